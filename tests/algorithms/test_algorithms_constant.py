import numpy as np
import pytest
from outcomes import START, N, generator, outcome, problem

from spsa.algorithms import Rule, create, settings_faults


def rule(**settings: object) -> Rule:
    return create("constant", settings, problem())


def test_example_1_2_perturbs_all_parameters_by_c() -> None:
    constant = rule(c=0.75)
    rng = generator()
    drawn = np.array([constant.ask(constant.start(), k, rng).offset for k in range(1, 4001)])
    assert np.abs(drawn).min() == np.abs(drawn).max() == 0.75
    assert np.abs(drawn.T @ drawn / 4000 / 0.75**2 - np.eye(N)).max() < 0.06


def test_example_1_1_perturbs_one_parameter_after_the_other() -> None:
    constant = rule(c=0.75, perturbation="fdsa")
    drawn = np.array([constant.ask(constant.start(), k, generator()).offset for k in range(1, 11)])
    assert drawn.tolist() == (0.75 * np.vstack([np.eye(N), np.eye(N)])).tolist()


@pytest.mark.parametrize("perturbation", ["spsa", "fdsa"])
def test_a_win_moves_theta_by_r_c_and_a_loss_by_minus_r_c(perturbation: str) -> None:
    constant = rule(r=0.01, c=2, perturbation=perturbation)
    asked = constant.ask(constant.start(), 4, generator())
    for pentanomial, games in (((0, 0, 0, 1, 0), 1), ((0, 1, 0, 0, 0), -1), ((0, 0, 1, 0, 0), 0)):
        after, _ = constant.tell(constant.start(), outcome(asked, pentanomial, k=4))
        assert constant.theta(after) - START == pytest.approx(games * 0.01 * asked.offset)


def test_nothing_decays() -> None:
    constant = rule(perturbation="fdsa")
    first, last = (constant.ask(constant.start(), k, generator()) for k in (1, 1 + 1000 * N))
    assert first.offset.tolist() == last.offset.tolist()
    assert (first.a_k, first.c_k) == (last.a_k, last.c_k)


@pytest.mark.parametrize(
    ("found", "hint"),
    [("fsda", "; did you mean 'fdsa'?"), ("SPSA", "; did you mean 'spsa'?"), ("x", ""), (1, "")],
)
def test_a_perturbation_nobody_knows_is_a_fault(found: object, hint: str) -> None:
    assert settings_faults("constant", {"perturbation": found}) == [
        (
            "perturbation",
            f"found {found!r}",
            f'which parameters are perturbed in an iteration, all or one: "spsa" or "fdsa"{hint}',
        )
    ]


def test_both_perturbations_may_be_given() -> None:
    for known in ("spsa", "fdsa"):
        assert settings_faults("constant", {"perturbation": known}) == []

"""What a run keeps of config.toml, and how it tells what the file has become since."""

from dataclasses import replace

from spsa.core.game_settings import GameSettings, TimeControl
from spsa.master.session import RunSettings

SETTINGS = RunSettings(
    rule={"alpha": 0.6},
    planned_iterations=100,
    games_per_iteration=60,
    batch_size=4,
    iterations_in_flight=2,
    max_attempts=5,
    delivery={"kind": "build", "flags": ["--release"]},
    game_settings=GameSettings(
        time_control=TimeControl(low=0.1, high=0.3), engine_options={"Hash": "16"}
    ),
)


def test_every_single_difference_is_named() -> None:
    game_settings = replace(
        SETTINGS.game_settings,
        time_control=TimeControl(low=0.1, high=0.4),
        engine_options={"Threads": "1"},
    )
    again = RunSettings.from_json(SETTINGS.to_json(), SETTINGS.game_settings)
    assert again == SETTINGS and SETTINGS.differences(again) == []
    wanted = replace(SETTINGS, batch_size=6, rule={}, game_settings=game_settings)
    assert SETTINGS.differences(wanted) == [
        "batch_size: the run has 4, the files say 6",
        "engine_options.Hash: the run has 16, the files say none",
        "engine_options.Threads: the run has none, the files say 1",
        "rule.alpha: the run has 0.6, the files say none",
        "time_control.high: the run has 0.3, the files say 0.4",
    ]

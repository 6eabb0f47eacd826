"""Signs of the quick simulator; `benches.papers theory` compares the rest of it with theory."""

from math import sqrt

import numpy as np

from benches.papers.constant import ConstantGains


def test_more_parameters_than_a_word_has_bits_get_signs_of_their_own():
    n = 70
    wide = ConstantGains(loss=np.full(n, 1e-6), c=np.ones(n), r=1.0, draw_rate=0.0)
    signs = wide.at_once(np.zeros((4000, n)), 1, np.random.default_rng(5))
    assert set(np.unique(np.rint(signs))) == {-1.0, 1.0}
    alike = np.corrcoef(signs.T) - np.eye(n)
    assert np.abs(alike).max() < 5 / sqrt(4000)

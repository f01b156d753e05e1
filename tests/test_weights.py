import pytest
import torch

from rni import InputError
from rni.weights import Dale, Dense, LowRank, dale_signs, random_matrix


def test_every_form_multiplies_like_its_matrix(generator):
    left, right = (torch.randn(8, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    h = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    for form in (Dense(left @ right.T), LowRank(left, right), Dale(left @ right.T, dale_signs(8, 0.25, generator))):
        torch.testing.assert_close(form(h), h @ form.matrix().T)
        torch.testing.assert_close(form.pull_back(h), h @ form.matrix())


def test_random_matrix_has_exactly_the_spectral_radius_asked_for(generator):
    for signs in (None, dale_signs(100, 0.25, generator)):
        w = random_matrix(100, 0.7, generator, signs)
        assert float(torch.linalg.eigvals(w).abs().max()) == pytest.approx(0.7)
    assert not random_matrix(10, 0.0).any()


def test_dale_columns_keep_their_sign_after_a_step(generator):
    signs = dale_signs(40, 0.25, generator)
    assert int((signs < 0).sum()) == 10
    dale = Dale(random_matrix(40, 0.5, generator, signs), signs)
    before = dale.matrix().detach().clone()
    left, right = (torch.randn(3, 40, generator=generator, dtype=torch.float64) for _ in range(2))
    dale.descend_(left, right, 0.1)
    stepped = before - 0.1 * left.T @ right
    torch.testing.assert_close(dale.matrix().detach(), torch.where(stepped * signs > 0, stepped, 0.0))


def test_wrong_shapes_are_named():
    with pytest.raises(InputError, match=r"recurrent: shape \(2, 3\)"):
        Dense(torch.zeros(2, 3))
    with pytest.raises(InputError, match=r"recurrent_left: shape \(4, 2\), recurrent_right: shape \(4, 1\)"):
        LowRank(torch.zeros(4, 2), torch.zeros(4, 1))
    with pytest.raises(InputError, match=r"inhibitory: 1\.5"):
        dale_signs(10, 1.5)

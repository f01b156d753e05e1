import pytest
import torch
from told import mistyped

from rni import InputError, vectors


def test_independent_vectors_have_the_norms_asked_for(generator):
    e, d = vectors.independent(1000, 2, generator, encoder_norm=[2.0, 3.0], decoder_norm=0.5)
    torch.testing.assert_close(e.norm(dim=0), torch.tensor([2.0, 3.0], dtype=torch.float64))
    torch.testing.assert_close(d.norm(dim=0), torch.full((2,), 0.5, dtype=torch.float64))
    assert (e.T @ d).abs().max() < 0.2


def test_overlap_follows_the_recipe_of_the_paper(generator):
    e, d = vectors.overlapping(20_000, 1, generator, overlap=0.4)
    assert float(e[:, 0] @ d[:, 0]) == pytest.approx(0.4 / (0.4**2 + 0.6**2) ** 0.5, abs=0.02)
    assert float(d.norm()) == pytest.approx(1.0)


def test_orthonormal_vectors(generator):
    both = torch.cat(vectors.orthonormal(50, 3, generator), dim=1)
    torch.testing.assert_close(both.T @ both, torch.eye(6, dtype=torch.float64))


def support(vector):
    return set(vector.nonzero().flatten().tolist())


def test_supports(generator):
    e, d = vectors.on_supports(100, 2, generator, kind="same")
    assert support(e[:, 0]) == support(d[:, 0]) == set(range(50))
    assert support(e[:, 1]) == support(d[:, 1]) == set(range(50, 100))
    e, d = vectors.on_supports(100, 2, generator, kind="overlap")
    assert support(e[:, 0]) == support(d[:, 0]) == set(range(60))
    assert support(e[:, 1]) == support(d[:, 1]) == set(range(40, 100))
    e, d = vectors.on_supports(100, 2, generator, kind="disjoint")
    assert all(not support(e[:, c]) & support(d[:, c]) for c in range(2))
    e, d = vectors.on_supports(100, 2, generator, kind="decoders")
    assert len(support(e[:, 0])) == 100
    assert support(d[:, 1]) == set(range(50, 100))
    e, d = vectors.on_supports(100, 2, generator, kind="encoders")
    assert support(e[:, 1]) == set(range(50, 100))
    assert len(support(d[:, 0])) == 100


def test_supported_vectors_have_variance_one_over_the_support(generator):
    e, _ = vectors.on_supports(40_000, 2, generator, kind="same")
    assert e.norm(dim=0).tolist() == pytest.approx([1.0, 1.0], abs=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vectors.orthonormal(3, 2), "neurons: 3; allowed: at least 4"),
        (lambda: vectors.on_supports(10, 2, kind=mistyped("none")), "kind: 'none'; allowed: same"),
        (lambda: vectors.on_supports(10, 2, fraction=0.3), r"fraction: 0.3; allowed: from 0.5"),
        (lambda: vectors.independent(10, 2, encoder_norm=[1.0]), "norms.*2 of them"),
        (lambda: vectors.independent(10, 2, encoder_norm=-1.0), "norms.*positive"),
    ],
)
def test_impossible_vectors_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()

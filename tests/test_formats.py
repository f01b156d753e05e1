"""Files as other people's code makes them: what is read is what that code computes, and its decays are found."""

import math

import numpy as np
import pytest
import scipy.io
import torch
from torch import nn

from rni import InputError, VanillaRNN
from rni.analysis.effective import fit_integrals
from rni.exchange import foreign

N, LEAK, DECAYS = 30, 0.2, (0.98, 0.9)
WITHIN = [1 - (1 - decay) / LEAK for decay in DECAYS]  # eigenvalues of W with which the whole step has these decays
REST = 60.0  # current at which no ReLU is ever silent
RNG = np.random.default_rng(0)


def vectors(n=N):
    """L, R (n, 2) with R.T L = 1, both orthogonal to (1, ..., 1), so that a common bias is not integrated."""
    left, right = RNG.normal(size=(2, n, 2))
    left, right = left - left.mean(0), right - right.mean(0)
    return left, right @ np.linalg.inv(left.T @ right)


L, R = vectors()
W = L @ np.diag(WITHIN) @ R.T
SMALL = 1e-3  # inputs to a tanh, which is a line then
X = torch.from_numpy(RNG.normal(size=(12, 200, 2)))


def simulated(step, state, read, x=X):
    """Outputs of the code that a file comes from: one step after the other, of states as rows."""
    outputs = []
    for now in x.unbind(1):
        state = step(state, now)
        outputs.append(read(state))
    return torch.stack(outputs, 1)


def tensors(**arrays):
    return {name: torch.from_numpy(np.asarray(values, float)) for name, values in arrays.items()}


def psychrnn(path, dale=False):
    """As PsychRNN's RNN.save: effective weights, masks and Dale matrices beside them, dale_ratio pickled if None."""
    w, u, out = W, L, R.T
    signs, start = np.ones(N), np.full((1, N), REST)
    if dale:
        w, u, out, signs = dale_weights()
    masks = [RNG.random(matrix.shape) < 2 for matrix in (u, w, out)]
    saved = {
        "W_in": u,
        "W_rec": w,
        "W_out": out,
        "b_rec": REST - w @ np.full(N, REST),
        "b_out": -out @ np.full(N, REST),
        "init_state": start,
        "Dale_rec": np.diag(signs),
        "Dale_out": np.diag((signs > 0).astype(float)),
        **dict(zip(("input_connectivity", "rec_connectivity", "output_connectivity"), masks, strict=True)),
        "dale_ratio": 0.8 if dale else None,
    }
    np.savez(path, **saved)
    t = tensors(**{name: values for name, values in saved.items() if name != "dale_ratio"})

    def step(v, x):
        return (1 - LEAK) * v + LEAK * (torch.relu(v) @ t["W_rec"].T + x @ t["W_in"].T + t["b_rec"])

    return simulated(step, t["init_state"].repeat(len(X), 1), lambda v: torch.relu(v) @ t["W_out"].T + t["b_out"])


def dale_weights():
    """W under Dale's law whose leading mode has the first decay, and inputs and outputs along that mode alone."""
    signs = np.where(np.arange(N) < 0.8 * N, 1.0, -1.0)
    w = np.abs(RNG.normal(size=(N, N))) * np.where(signs > 0, 1.0, 2.0) * signs
    w[np.diag_indices(N)] = 0
    values, modes = np.linalg.eig(w)
    mode = np.argmax(values.real)
    w, along = w * WITHIN[0] / values[mode].real, np.abs(modes[:, mode].real)
    return w, np.stack([along, along], 1), np.abs(RNG.normal(size=(2, N))) * (signs > 0), signs

r"""The batch loss (section 2): the squared error of the outputs on a batch of input sequences."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from rni.losses.averaged import AveragedLoss
from rni.losses.gradient import Gradient, Trained
from rni.network import Network
from rni.task import Integration, correlated_noise, white_noise


@dataclass(frozen=True)
class BatchLoss:
    r"""$L = \big\langle \sum_{c=1}^D \sum_{t=0}^{T-1} (y_{c,t} - \bar y_{c,t})^2 \big\rangle_X$.

    The paper's normalisation: summed over time and channels, averaged over the batch. (The mean over time as well,
    divided by $s^2 T^2$, as in the authors' code, is this loss divided by $s^2 T^3$.) Inputs are white noise, or
    Gaussian of the given covariance, drawn anew for each step.
    """

    task: Integration
    duration: int = 3
    batch: int = 64
    covariance: Tensor | None = None

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
        """Fresh inputs, (batch, duration, channels)."""
        if self.covariance is None:
            return white_noise(self.batch, self.duration, self.task.channels, generator, dtype=dtype)
        return correlated_noise(self.batch, self.task.channels, self.covariance, generator, dtype=dtype)

    def silent(self) -> float:
        """The loss of a network without output: what any training starts from, and must not grow far beyond."""
        return AveragedLoss(self.task, self.duration, self.covariance).silent()

    def value(self, net: Network, inputs: Tensor) -> Tensor:
        """The loss, a scalar for automatic differentiation."""
        return (net.outputs(inputs) - self.task.targets(inputs)).square().sum() / len(inputs)

    @torch.no_grad()
    def gradient(self, net: Network, inputs: Tensor, train: Trained = "recurrent") -> tuple[float, Gradient]:
        r"""The loss and its gradient, by back-propagation through time on whole matrices.

        $\delta_t = f'(\nu_t) \odot (\frac{2}{B} d\,(y_t - \bar y_t) + W^\dagger \delta_{t+1})$ and
        $\partial L / \partial W = \sum_t \delta_t\,(h_{t-1} + x_t e)^\dagger$. At t = 0 the state is 0, so that both
        the forward product and the gradient have rank D there.
        """
        batch, duration, channels = inputs.shape
        encoders, decoders, w, f = net.encoders, net.decoders, net.recurrent, net.f
        x = inputs.unbind(1)
        # One row for each time and sequence: t = 1, ..., T - 1, and t = 0 last, where D rows will be enough.
        rows = [slice((t - 1) % duration * batch, (t - 1) % duration * batch + batch) for t in range(duration)]
        terms = (duration - 1) * batch + channels
        currents = encoders.new_empty(duration * batch, net.neurons)
        fed = encoders.new_empty(terms, net.neurons)  # h_{t-1} + x_t e
        fed[-channels:] = encoders.T

        states, residuals = [], []
        targets = self.task.targets(inputs).unbind(1)
        for t, row in enumerate(rows):
            if t == 0:
                torch.mm(x[0], w(encoders.T), out=currents[row])
            else:
                torch.addmm(states[-1], x[t], encoders.T, out=fed[row])
                w(fed[row], out=currents[row])
            states.append(f(currents[row]))
            residuals.append(torch.addmm(targets[t], states[t], decoders, beta=-1))
        in_rows = torch.cat([*residuals[1:], residuals[0]])
        loss = float(in_rows.square().sum()) / batch

        errors = encoders.new_empty(max(terms, duration * batch), net.neurons)
        torch.mm(in_rows, decoders.T * (2 / batch), out=errors[: duration * batch])
        for t, row in reversed(list(enumerate(rows))):
            errors[row] *= f.derivative(currents[row])
            if t > 0:
                w.pull_back(errors[row], onto=errors[rows[t - 1]])
        first = x[0].T @ errors[rows[0]]
        decoder_gradient = encoder_gradient = None
        if train != "recurrent":
            slope = torch.cat([*states[1:], states[0]]).T @ in_rows
            decoder_gradient = slope * (2 / batch)
        if train == "all":
            driven = sum((x[t].T @ errors[rows[t]] for t in range(1, duration)), first)
            encoder_gradient = w.pull_back(driven).T
        errors[terms - channels : terms] = first  # in the place of t = 0
        return loss, Gradient(errors[:terms], fed, decoder_gradient, encoder_gradient)

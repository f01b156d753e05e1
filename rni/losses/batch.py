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
        rows = [slice((t - 1) * batch, t * batch) for t in range(duration)]
        first = slice((duration - 1) * batch, None)
        left = encoders.new_empty((duration - 1) * batch + channels, net.neurons)
        right = torch.empty_like(left)
        right[first] = encoders.T

        currents, states = [inputs[:, 0] @ w(encoders.T)], []
        for t in range(duration):
            if t > 0:
                torch.addmm(states[-1], inputs[:, t], encoders.T, out=right[rows[t]])
                currents.append(w(right[rows[t]]))
            states.append(f(currents[t]))
        residuals = [h @ decoders - ybar for h, ybar in zip(states, self.task.targets(inputs).unbind(1), strict=True)]
        loss = sum(float(residual.square().sum()) for residual in residuals) / batch

        pulled: Tensor | None = None
        encoder_gradient = torch.zeros_like(encoders) if train == "all" else None
        for t in reversed(range(duration)):
            error = residuals[t] @ (decoders.T * (2 / batch))
            if pulled is not None:
                error += pulled
            error *= f.derivative(currents[t])
            if t == 0:
                torch.mm(inputs[:, 0].T, error, out=left[first])
            else:
                left[rows[t]] = error
                pulled = w.pull_back(error)
                if encoder_gradient is not None:
                    encoder_gradient += pulled.T @ inputs[:, t]
        if encoder_gradient is not None:
            encoder_gradient += w.pull_back(left[first]).T
        decoder_gradient = None
        if train != "recurrent":
            terms = zip(states, residuals, strict=True)
            decoder_gradient = sum((h.T @ r for h, r in terms), torch.zeros_like(decoders)) * (2 / batch)
        return loss, Gradient(left, right, decoder_gradient, encoder_gradient)

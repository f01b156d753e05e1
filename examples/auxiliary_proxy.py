"""A proxy loss as auxiliary term: a decision trained end to end, with and without a word about integration.

Three inputs; at the end the network must say whether y_0 > 0 (where y_2 < 0) or y_1 > 0 (where y_2 > 0), y being slowly
decaying integrals of the inputs. One label for each sequence is all that the task gives. The proxy loss adds what the
recurrent weights should be good for; it takes no sequences, only points. A linear strategy, y_0 + y_1 > 0, is right for
three quarters of the sequences.
"""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

import rni
from rni.tasks.inputs import white_noise
from rni.training.transfer import Head, accuracy, context

TASK = rni.Integration(decays=[0.98, 0.97, 0.97])
DURATION = 30
WEIGHTS = (0.0, 10.0)  # of the proxy loss


def train(weight: float, neurons: int, steps: int, seed: int) -> tuple[rni.Network, Head]:
    """Minimise cross-entropy at the last step plus `weight` times the proxy loss, from random recurrent weights."""
    generator = torch.Generator().manual_seed(seed)
    encoders, decoders = rni.vectors.independent(neurons, TASK.channels, generator)
    net = rni.Network(TASK, encoders, decoders, rni.weights.random_matrix(neurons, 0.9, generator).float(), "relu")
    u = torch.zeros(neurons, requires_grad=True)
    proxy = rni.ProxyLoss(TASK, points=64, bounds=(1.0, 1.0, 1.0))
    optimizer = torch.optim.Adam([*net.parameters(), u], lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        x = white_noise(32, DURATION, TASK.channels, generator)
        labels = context(TASK.targets(x)[:, -1]).float()
        loss = binary_cross_entropy_with_logits(Head(u, 1.0, 0.0).logits(net(x)[1][0]), labels)
        if weight:
            loss = loss + weight * proxy.value(net, proxy.draw(generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return net, Head(u.detach(), 1.0, 0.0)


@torch.no_grad()
def test(net: rni.Network, head: Head, duration: int) -> float:
    """Accuracy at the last step of new sequences."""
    x = white_noise(1000, duration, TASK.channels, torch.Generator().manual_seed(100))
    return accuracy(head(net(x)[1][0]), context(TASK.targets(x)[:, -1]))


def main(neurons: int = 100, steps: int = 300, seeds: int = 3) -> None:
    print(f"decisions right on new sequences, after {steps} steps of training; one column for each seed")
    for weight in WEIGHTS:
        trained = [train(weight, neurons, steps, seed) for seed in range(seeds)]
        for duration in (DURATION, 10 * DURATION):
            scores = "  ".join(f"{100 * test(*each, duration):4.1f} %" for each in trained)
            print(f"proxy loss x {weight:<4g} sequences of {duration:<3}  {scores}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # quicker for matrices this small
    main()

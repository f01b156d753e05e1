"""Networks that violate the claims: trained ones, changed."""

import torch

from rni.papers import Profile
from rni.runs.execution import Result


class OneSeed(Profile):
    """A profile without repetitions."""

    def seeds(self, paper, few=None, quick=2):
        return 1


def altered(result, change):
    """The result of a run with its network changed in place by a function."""
    net = result.specification.build()
    net.load_state_dict(result.network.state_dict())
    with torch.no_grad():
        change(net)
    return Result(result.specification, net, result.losses)


def shuffle(net):
    permutation = torch.randperm(net.neurons, generator=torch.Generator().manual_seed(0))
    net.recurrent.value.copy_(net.recurrent.value[permutation])


def untrain(net):
    noise = torch.randn(net.neurons, net.neurons, generator=torch.Generator().manual_seed(0))
    net.recurrent.value.copy_(noise / net.neurons**0.5)


def failed(figure, measured):
    """The claims that are not reproduced, without the figure's name."""
    return {claim.id.partition(".")[2] for claim in figure.claims(measured) if claim.verdict == "not reproduced"}

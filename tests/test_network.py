import pytest
import torch
from told import mistyped
from torch import nn

from rni import InputError, Integration, Network
from rni.tasks.inputs import white_noise


def test_states_follow_the_update_equation(small, generator):
    net = small("sigmoid")
    x = white_noise(3, 6, 2, generator, dtype=torch.float64)
    h, last = net(x)
    state = torch.zeros(3, net.neurons, dtype=torch.float64)
    w = net.recurrent.matrix()
    for t in range(6):
        current = (state + x[:, t] @ net.encoders.T) @ w.T
        state = torch.sigmoid(50 * (current - 0.1))
        torch.testing.assert_close(net.currents(x)[:, t], current)
        torch.testing.assert_close(h[:, t], state)
    assert torch.equal(last[0], h[:, -1])
    torch.testing.assert_close(net.outputs(x), h @ net.decoders)


def test_it_is_called_like_torch_rnn(small, generator):
    net = small("tanh")
    rnn = nn.RNN(2, net.neurons, batch_first=True, dtype=torch.float64)
    x = white_noise(4, 5, 2, generator, dtype=torch.float64)
    for inputs in (x, x[0]):
        (h, last), (rnn_h, rnn_last) = net(inputs), rnn(inputs)
        assert h.shape == rnn_h.shape
        assert last.shape == rnn_last.shape
    first, middle = net(x[:, :2])
    second, _ = net(x[:, 2:], middle)
    torch.testing.assert_close(torch.cat([first, second], dim=1), net(x)[0])


@pytest.mark.parametrize("f", ["relu", "tanh"])
def test_torch_rnn_is_the_same_network_both_ways(small, generator, f):
    net = small(f)
    x = white_noise(4, 30, 2, generator, dtype=torch.float64)
    rnn, readout = net.to_torch()
    torch.testing.assert_close(readout(rnn(x)[0]), net.outputs(x), rtol=1e-10, atol=1e-12)
    back = Network.from_torch(rnn, readout, net.task)
    torch.testing.assert_close(back.outputs(x), net.outputs(x), rtol=1e-8, atol=1e-10)
    assert back.f.name == f


def test_what_torch_rnn_can_not_be_is_refused(small):
    task, readout = Integration((0.9, 0.8)), nn.Linear(12, 2, bias=False)
    with pytest.raises(InputError, match="'sigmoid'; allowed: 'relu' or 'tanh'"):
        small("sigmoid").to_torch()
    with pytest.raises(InputError, match=r"GRU with 1 layers; allowed: a torch\.nn\.RNN"):
        Network.from_torch(mistyped(nn.GRU(2, 12)), readout, task)
    with pytest.raises(InputError, match="RNN with 2 layers"):
        Network.from_torch(nn.RNN(2, 12, num_layers=2), readout, task)
    with pytest.raises(InputError, match="bias_ih_l0: is not zero"):
        Network.from_torch(nn.RNN(2, 12), readout, task)
    rnn = nn.RNN(2, 12, bias=False)
    nn.init.zeros_(rnn.get_parameter("weight_hh_l0"))
    with pytest.raises(InputError, match="outside the range of weight_hh"):
        Network.from_torch(rnn, readout, task)


@pytest.mark.parametrize("f", ["relu", "sigmoid"])
def test_silenced_neurons_transmit_nothing(small, generator, f):
    net = small(f)
    x = white_noise(3, 8, 2, generator, dtype=torch.float64)
    quiet = net.silenced([0, 5])
    assert not quiet.currents(x)[..., [0, 5]].any()
    keep = [i for i in range(12) if i not in (0, 5)]
    w = net.recurrent.matrix()[keep][:, keep]
    smaller = Network(net.task, net.encoders[keep], net.decoders[keep], w, f)
    torch.testing.assert_close(quiet.outputs(x), smaller.outputs(x))
    with pytest.raises(InputError, match="indices from 0 to 11"):
        net.silenced([12])


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.int64, torch.bool])
def test_inputs_and_first_states_of_any_kind_are_cast_to_the_precision_of_the_network(small, generator, kind):
    net = small()
    x = white_noise(2, 5, 2, generator).to(kind)
    start = torch.randn(1, 2, net.neurons, generator=generator).to(kind)
    for use in (net.outputs, net.currents, lambda *given: net(*given)[0]):
        assert torch.equal(use(x), use(x.double()))
        assert torch.equal(use(x, start), use(x.double(), start.double()))
        assert torch.equal(use(x.numpy()), use(x))
        for wrong in (x.tolist(), x.numpy().astype(complex), x.to(torch.complex64)):
            with pytest.raises(InputError, match=r"inputs: .*; allowed: a tensor or an array of real numbers"):
                use(wrong)


def test_targets_of_whole_numbers_are_those_of_real_ones():
    task, pulses = Integration((0.9, 0.8)), torch.tensor([[1, 0], [0, -2], [3, 1]])
    assert torch.equal(task.targets(pulses), task.targets(pulses.float()))


def test_dtype_follows_torch(small, generator):
    net = small("sigmoid").float()
    assert net.dtype == torch.float32
    assert net.outputs(white_noise(1, 3, 2, generator)).dtype == torch.float32


@pytest.mark.parametrize("shape", [(3, 4, 1), (3, 0, 2), (2,)])
def test_inputs_of_a_wrong_shape_are_refused(small, shape):
    with pytest.raises(InputError, match=r"allowed: \(batch, time, 2\)"):
        small().outputs(torch.zeros(shape, dtype=torch.float64))


def test_vectors_of_a_wrong_shape_are_refused():
    with pytest.raises(InputError, match=r"decoders: shape \(4, 2\); allowed: \(4, 1\)"):
        Network(Integration(0.9), torch.zeros(4, 1), torch.zeros(4, 2), torch.zeros(4, 4))


def test_a_network_from_torch_feeds_its_inputs_as_well_as_it_says(generator):
    """Encoders that are right in float64 only, for a W with small singular values, are no encoders in float32."""
    u, _, v = torch.linalg.svd(torch.randn(60, 60, generator=generator, dtype=torch.float64))
    rnn, readout = nn.RNN(1, 60, bias=False, nonlinearity="relu"), nn.Linear(60, 1, bias=False)
    for smallest in (-1, -7):
        w = (u * torch.logspace(0, smallest, 60, dtype=torch.float64)) @ v
        weights = {"weight_hh_l0": w, "weight_ih_l0": torch.randn(60, 1, generator=generator)}
        rnn.load_state_dict(weights)
        if smallest == -7:
            with pytest.raises(InputError, match=r"outside the range of weight_hh in torch\.float32; allowed: 1e-05"):
                Network.from_torch(rnn, readout, Integration(0.9))
            continue
        net = Network.from_torch(rnn, readout, Integration(0.9)).double()
        fed = net.recurrent.matrix() @ net.encoders - weights["weight_ih_l0"]
        assert fed.norm() < 1e-5 * weights["weight_ih_l0"].norm()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recurrent": torch.zeros(4, 4, dtype=torch.int64)}, "recurrent: torch.int64; allowed: a tensor of real"),
        ({"recurrent": torch.zeros(4, 4, dtype=torch.complex64)}, "recurrent: torch.complex64; allowed"),
        ({"encoders": torch.zeros(4, 1, dtype=torch.complex64)}, "encoders: torch.complex64; allowed"),
        ({"decoders": [[0.0]] * 4}, "decoders: list; allowed: a tensor"),
        ({"task": 0.9}, "task: 0.9; allowed: an Integration"),
    ],
)
def test_what_makes_no_network_is_refused(change, message):
    parts = {"task": Integration(0.9), "encoders": torch.zeros(4, 1), "decoders": torch.zeros(4, 1)}
    with pytest.raises(InputError, match=message):
        Network(**(parts | {"recurrent": torch.zeros(4, 4)} | change))

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import CHROMIUM, Browser
from typer.testing import CliRunner

import rni
from rni.cli import app
from rni.files import native
from rni.pages import explore, explorer, page
from rni.pages.explorer import describe
from rni.pages.snapshots import Snapshots, beside, read
from rni.weights import Dale, LowRank, dale_signs, random_matrix

SOURCES = Path(__file__).parents[2] / "explorer"
TWO = rni.Integration([0.99, 0.9])
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")


def dense(neurons=200, task=TWO, f="relu"):
    """A designed network, and noise on every weight: W of full rank, in float32."""
    net = rni.design(task, neurons).network
    generator = torch.Generator().manual_seed(1)
    noise = random_matrix(neurons, 0.01, generator)
    return rni.Network(task, net.encoders, net.decoders, (net.recurrent.matrix() + noise).float(), f)


def dale(neurons=100):
    generator = torch.Generator().manual_seed(2)
    signs = dale_signs(neurons, 0.25, generator)
    vectors = rni.vectors.independent(neurons, 2, generator)
    return rni.Network(TWO, *vectors, Dale(random_matrix(neurons, 0.9, generator, signs).float(), signs), "relu")


def mixed_slopes(neurons=150):
    """A sigmoid network in which each neuron has its own slope."""
    generator = torch.Generator().manual_seed(3)
    f = rni.activations.make("sigmoid", slope=5 + torch.rand(neurons, generator=generator))
    left, right = torch.randn(2, neurons, 3, generator=generator) / neurons**0.5
    return rni.Network(TWO, *rni.vectors.independent(neurons, 2, generator), LowRank(left, right), f)


NETWORKS = {
    "designed ReLU": lambda: rni.design(TWO, 300).network,
    "dense": dense,
    "three channels": lambda: dense(task=rni.Integration([0.995, 0.98, 0.9], [1.0, 2.0, 0.5])),
    "sigmoid": lambda: rni.design(rni.Integration([0.8, 0.75]), 300, "sigmoid").network,
    "slopes of their own": mixed_slopes,
    "Dale": dale,
    "linear": lambda: rni.design(rni.Integration(0.98), 100, "linear").network,
    "tanh": lambda: dense(f="tanh"),
    "leaky": lambda: rni.design(TWO, 300, leak=0.2).network,
}


def data(text):
    """What a page holds of the network."""
    found = re.search(r'<script type="application/json" id="network">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def unpacked(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), np.dtype(packed["type"]).newbyteorder("<"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@in_browser
@pytest.mark.parametrize("kind", NETWORKS)
def test_the_outputs_in_the_page_are_those_of_python_over_a_thousand_steps(browser, tmp_path, kind):
    net = NETWORKS[kind]()
    browser.open(explore(net, tmp_path / "page.html"))
    x = torch.randn(1, 1000, net.channels, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    shown = np.array(browser.evaluate(f"rni.simulate({x[0].tolist()})"))
    with torch.no_grad():
        y = net.double().outputs(x)[0].numpy()
    assert y.std() > 0.01
    assert np.abs(shown - y).max() <= 1e-5 * np.sqrt((y**2).mean())


@in_browser
def test_a_silenced_network_in_the_page_is_that_of_python(browser, tmp_path):
    net = dense()
    browser.open(explore(net, tmp_path / "page.html"))
    x = torch.randn(1, 200, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    program = f"""(() => {{
        const {{ network }} = rni.session;
        network.rest();
        for (let i = 0; i < 50; i++) network.active[i] = 0;
        network.feed();
        return {x[0].tolist()}.map((x) => {{ network.step(x); return [...network.y]; }});
    }})()"""
    browser.evaluate("document.getElementById('play').click()")
    shown = np.array(browser.evaluate(program))
    with torch.no_grad():
        y = net.double().silenced(range(50)).outputs(x)[0].numpy()
    assert np.abs(shown - y).max() <= 1e-5 * np.sqrt((y**2).mean())


@in_browser
def test_a_stage_of_training_in_the_page_is_the_snapshot(browser, tmp_path):
    net, path = dense(100), tmp_path / "net.snapshots.safetensors"
    series = Snapshots(path, 2, 10)
    series.take(0, 1.0, rni.design(TWO, 100, seed=1).network)
    series.take(10, 0.5, net)
    then = read(path)[0]
    browser.open(explore(net, tmp_path / "page.html", snapshots=read(path)))
    x = torch.randn(1, 200, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    program = f"""(() => {{
        const {{ session }} = rni;
        document.getElementById("play").click();
        session.learn(0);
        session.network.rest();
        return {x[0].tolist()}.map((x) => {{ session.network.step(x); return [...session.network.y]; }});
    }})()"""
    shown = np.array(browser.evaluate(program))
    weights = LowRank((then.modes.left * then.modes.values).double(), then.modes.right.double())
    with torch.no_grad():
        y = rni.Network(TWO, then.encoders, then.decoders, weights, "relu").outputs(x)[0].numpy()
    assert np.abs(shown - y).max() <= 1e-5 * np.sqrt((y**2).mean())


DRAWN = """[...document.querySelectorAll("canvas")].filter((canvas) => {
    if (!canvas.offsetParent || !canvas.width) return false;
    const { width, height } = canvas;
    const copy = Object.assign(document.createElement("canvas"), { width, height });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, width, height);
    return data.some((value, at) => at % 4 === 3 && value > 0);
}).length"""


@in_browser
@pytest.mark.parametrize(
    ("kind", "width"),
    [(kind, 1400) for kind in ("designed ReLU", "three channels", "sigmoid", "Dale", "linear")]
    + [(kind, 390) for kind in ("designed ReLU", "three channels")],
)
def test_every_view_is_drawn_and_nothing_overflows_or_complains(browser, tmp_path, kind, width):
    net = NETWORKS[kind]()
    browser.open(explore(net, tmp_path / "page.html"), width, 4000, dark=width == 390, phone=width == 390)
    views = 5 + net.channels + 1  # manifold, neurons, selectivity, one neuron, W; outputs; singular values
    browser.wait_for(f"{DRAWN} === {views}")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    browser.wait_for("rni.session.time > 0 && rni.frames() > 5")
    assert browser.problems == []


@in_browser
def test_silencing_a_fifth_shows_the_predicted_decay(browser, tmp_path):
    browser.open(explore(rni.design(TWO, 1000).network, tmp_path / "page.html"))
    browser.evaluate("""(() => {
        const slider = document.getElementById("silenced");
        document.getElementById("play").click();
        slider.value = 0.2;
        slider.dispatchEvent(new Event("input"));
    })()""")
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    rows = browser.evaluate("""[...document.querySelectorAll("#numbers tbody tr")].map((row) =>
        [...row.cells].slice(1, 4).map((cell) => Number(cell.textContent)))""")
    for decay, (given, predicted, measured) in zip(TWO.decays, rows, strict=True):
        assert given == decay
        assert predicted == pytest.approx(0.8 * decay, rel=1e-3)
        assert measured == pytest.approx(0.8 * decay, rel=0.1)


@in_browser
def test_the_tour_and_each_control_work_without_a_complaint(browser, tmp_path):
    net = dense(neurons=60)
    series = Snapshots(tmp_path / "net.snapshots.safetensors", 2, 10)
    for step in (0, 10):
        series.take(step, 1.0 / (1 + step), net)
    browser.open(explore(net, tmp_path / "page.html", snapshots=list(series.kept.values())))
    browser.evaluate("""(() => {
        const get = (id) => document.getElementById(id);
        const set = (id, value, event = "input") => {
            get(id).value = value;
            get(id).dispatchEvent(new Event(event, { bubbles: true }));
        };
        for (let k = 0; k < 7; k++) { get("tour-try").click(); get("tour-next").click(); }
        for (const radio of document.querySelectorAll("input[name=kind]")) radio.click();
        set("weights", 0.3, "change"); set("states", 0.2); set("modes", 2); set("size", 2); set("speed", 6);
        for (const { value } of get("activation").options) set("activation", value, "change");
        for (const { value } of get("order").options) set("order", value, "change");
        set("neuron", 7); set("stage", 0); set("stage", 1); set("hand-0", 0.5);
        for (const id of ["neuron-silence", "redraw", "restore", "step", "reset", "theme", "learn"]) get(id).click();
        for (const key of ["q", "s", ".", " ", "w"]) {
            for (const kind of ["keydown", "keyup"]) {
                document.body.dispatchEvent(new KeyboardEvent(kind, { key, bubbles: true }));
            }
        }
    })()""")
    browser.wait_for("rni.session.time > 20")
    assert browser.problems == []


@in_browser
def test_neurons_chosen_in_one_view_are_chosen_in_all_and_can_be_silenced(browser, tmp_path):
    browser.open(explore(rni.design(TWO, 300).network, tmp_path / "page.html"), 1400, 2200)
    browser.wait_for(f"{DRAWN} === 8")
    box = browser.evaluate(
        "(({ x, y, width, height }) => [x, y, width, height])"
        "(document.getElementById('raster').getBoundingClientRect())"
    )
    x, top, bottom = box[0] + box[2] / 2, box[1] + 0.1 * box[3], box[1] + 0.4 * box[3]
    for kind, y in (("mousePressed", top), ("mouseMoved", (top + bottom) / 2), ("mouseReleased", bottom)):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    chosen = browser.evaluate("rni.session.chosen.size")
    assert chosen == pytest.approx(90, abs=3)
    browser.wait_for(f"document.getElementById('chosen-note').textContent.startsWith('{chosen} of 300')")
    browser.evaluate("document.getElementById('silence-chosen').click()")
    assert browser.evaluate("rni.session.network.active.filter((active) => !active).length") == chosen


@in_browser
def test_every_control_has_a_name(browser, tmp_path):
    browser.open(explore(rni.design(TWO, 100).network, tmp_path / "page.html"))
    nameless = """[...document.querySelectorAll("button, input, select, canvas[id]")].filter((e) =>
        !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim())).map((e) => e.id)"""
    assert browser.evaluate(nameless) == []


CONTRAST = """(() => {
    const light = (hex) => hex.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16) / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
    const style = getComputedStyle(document.documentElement);
    const of = (name) => {
        const hex = style.getPropertyValue(`--${name}`).trim();
        return light(hex.length === 4 ? hex.replace(/[0-9a-f]/gi, "$&$&") : hex);
    };
    const ratio = (a, b) => (Math.max(of(a), of(b)) + 0.05) / (Math.min(of(a), of(b)) + 0.05);
    const names = ["text", "soft", "accent", "silent", "plus", "minus", "c1", "c2", "c3", "c4", "c5"];
    const pairs = names.flatMap((name) => [ratio(name, "card"), ratio(name, "page")]);
    return { text: Math.min(ratio("on-accent", "accent"), ...pairs), lines: ratio("target", "card") };
})()"""


@in_browser
@pytest.mark.parametrize("dark", [False, True])
def test_colours_have_the_contrast_that_the_guidelines_ask_for(browser, tmp_path, dark):
    browser.open(explore(rni.design(TWO, 100).network, tmp_path / "page.html"), dark=dark)
    assert browser.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    contrast = browser.evaluate(CONTRAST)
    assert contrast["text"] >= 4.5
    assert contrast["lines"] >= 3


def test_the_page_needs_nothing_from_elsewhere_and_may_not_ask_for_it():
    text = page(rni.design(TWO, 100).network)
    assert not re.findall(r'(?:src|href)="(?!#)', text)
    assert "http://" not in text
    assert "https://" not in text
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for element in ("script", "style"):
        (content,) = re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL)
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy


def test_a_name_is_shown_as_it_is_and_never_run():
    name = "</script><script>alert(1)</script><img src=x onerror=alert(1)> & \"q\" 'q'"
    text = page(rni.design(TWO, 100).network, name=name)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert data(text)["name"] == name


def test_the_page_without_weights_is_small():
    net = rni.design(TWO, 100).network
    assert len(page(net)) < 2e5


def test_a_factored_network_goes_in_as_its_factors_and_a_dense_one_as_it_is():
    factored, full = rni.design(TWO, 100).network, dense(100)
    found = describe(factored, None, (), ())
    assert found["recurrent"] is None
    left, right = (unpacked(found["modes"][side]).reshape(2, 100).T for side in ("left", "right"))
    w = factored.recurrent.matrix().detach().numpy()
    np.testing.assert_allclose((left * found["modes"]["values"]) @ right.T, w, atol=1e-7)
    columns = unpacked(describe(full, None, (), ())["recurrent"]).reshape(100, 100)
    np.testing.assert_array_equal(columns.T, full.recurrent.matrix().detach().numpy())


def test_selectivity_in_the_page_is_that_of_the_analysis():
    net = rni.design(TWO, 300).network
    found = describe(net, None, (), ())["modes"]
    s = unpacked(found["left"]).reshape(2, 300).T @ np.array(found["map"])
    x = rni.inputs.white_noise(8, 200, 2, torch.Generator().manual_seed(7), dtype=torch.float64)
    with torch.no_grad():
        currents = net.currents(x).flatten(0, 1)
    expected = rni.analysis.linear_map(currents, net.task.targets(x).flatten(0, 1)).matrix.numpy()
    np.testing.assert_allclose(s, expected, atol=1e-6)
    assert np.abs(found["offset"]).max() < 1e-6


def test_what_a_page_cannot_hold_is_refused_in_one_line(tmp_path, monkeypatch):
    net = rni.design(TWO, 100).network
    with pytest.raises(rni.InputError) as caught:
        explore(net, tmp_path / "page.txt")
    assert (caught.value.field, caught.value.value) == ("path", str(tmp_path / "page.txt"))
    with pytest.raises(rni.InputError) as caught:
        page(rni.Network(TWO, net.encoders, net.decoders, net.recurrent, torch.sin))
    monkeypatch.setattr(explorer, "LARGEST", 50)
    assert caught.value.field == "activation"
    with pytest.raises(rni.InputError) as caught:
        page(dense(100))
    assert (caught.value.field, caught.value.value) == ("neurons", 100)


def test_a_network_that_knows_nothing_has_a_page():
    zero = rni.Network(rni.Integration([0.9, 0.0]), *rni.vectors.independent(20, 2), torch.zeros(20, 20))
    assert data(page(zero))["modes"]["values"] == []


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def test_the_command_explores_a_file_a_task_or_what_it_likes(tmp_path):
    net, out = tmp_path / "a <b>.safetensors", tmp_path / "page.html"
    rni.save(rni.design(TWO, 50).network, net)
    assert command("explore", net, "--out", out).exit_code == 0
    assert data(out.read_text(encoding="utf-8"))["name"] == net.name
    assert (
        command("explore", "--decays", ".95", ".9", "--neurons", 80, "--activation", "linear", "--out", out).exit_code
        == 0
    )
    found = data(out.read_text(encoding="utf-8"))
    assert (found["decays"], found["neurons"], found["activation"]["name"]) == ([0.95, 0.9], 80, "linear")
    assert command("explore", "--neurons", 100, "--out", out).exit_code == 0
    assert len(data(out.read_text(encoding="utf-8"))["decays"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "page.pdf"], "--out: 'page.pdf'; allowed: a name that ends in .html"),
        (["--decays", "1.5"], "--decays: 1.5; allowed: "),
        (["none.safetensors"], "none.safetensors: no such file"),
        (["net.safetensors", "--decays", "0.9"], "allowed: one network file, or --decays and --scales"),
        (["net.safetensors", "--neurons", "9"], "--neurons: given with net.safetensors"),
        (["--colour", "3"], "--colour: no such option"),
    ],
)
def test_a_wrong_command_is_answered_in_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = command("explore", *arguments).exception
    assert isinstance(error, rni.InputError)
    assert message in str(error)
    assert "\n" not in str(error)


CONFIGURATION = """
[task]
decays = [0.9, 0.8]
[network]
neurons = 40
[training]
steps = 60
"""


def test_training_keeps_snapshots_that_the_page_shows(tmp_path):
    config, net, out = tmp_path / "two.toml", tmp_path / "two.safetensors", tmp_path / "page.html"
    config.write_text(CONFIGURATION, encoding="utf-8")
    assert command("train", config, "--out", net, "--snapshots", 5).exit_code == 0
    steps = [s.step for s in read(beside(net))]
    assert steps == [0, 4, 15, 34, 60]
    first, last = (read(beside(net))[k].modes for k in (0, -1))
    assert len(first.values) == 0
    w = rni.load(net).recurrent.matrix().detach()
    held = (last.left * last.values) @ last.right.T
    assert torch.linalg.matrix_norm(held - w, 2) <= 2e-3 * torch.linalg.matrix_norm(w, 2)
    assert command("explore", net, "--out", out).exit_code == 0
    found = data(out.read_text(encoding="utf-8"))
    assert [s["step"] for s in found["snapshots"]] == steps
    assert len(found["losses"]) == 60
    assert rni.load(net).neurons == 40


def test_snapshots_of_another_training_are_left_out(tmp_path):
    net, out = tmp_path / "two.safetensors", tmp_path / "page.html"
    ours, other = (rni.parse_run({"seed": seed, "task": {"decays": [0.9]}}) for seed in (0, 1))
    designed = rni.design(rni.Integration(0.9), 30).network
    Snapshots(beside(net), 2, 10, other.key()).take(0, 1.0, designed)
    rni.save(designed, net, ours.to_dict())
    result = command("explore", net, "--out", out)
    assert "of another training" in result.output
    assert data(out.read_text(encoding="utf-8"))["snapshots"] == []


def test_snapshots_taken_before_a_kill_are_kept(tmp_path):
    net = rni.design(TWO, 30).network
    path = tmp_path / "net.snapshots.safetensors"
    Snapshots(path, 3, 100, "run")(0, 1.0, net)
    again = Snapshots(path, 3, 100, "run")
    again(100, 0.5, net)
    assert [s.step for s in read(path)] == [0, 100]
    assert list(Snapshots(path, 3, 100, "another").kept) == []
    with pytest.raises(rni.InputError) as caught:
        Snapshots(path, 1, 100)
    assert (caught.value.field, caught.value.value) == ("snapshots", 1)


def test_snapshots_show_decoders_that_were_trained(tmp_path):
    net = dense(50)
    series = Snapshots(tmp_path / "net.snapshots.safetensors", 2, 10)
    series.take(0, 1.0, net)
    with torch.no_grad():
        net.decoders.mul_(2)
    series.take(10, 0.5, net)
    first, last = describe(net, None, list(series.kept.values()), ())["snapshots"]
    assert "decoders" in first
    assert "encoders" not in first
    assert "decoders" not in last
    other = rni.design(TWO, 60).network
    with pytest.raises(rni.InputError) as caught:
        describe(other, None, list(series.kept.values()), ())
    assert (caught.value.field, caught.value.value) == ("snapshots", (50, 2))


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs node and npm")
@pytest.mark.skipif(not (SOURCES / "node_modules").exists(), reason="needs the explorer's packages: make explorer")
def test_the_program_in_the_package_is_what_its_sources_build(tmp_path):
    environment = os.environ | {"OUT": str(tmp_path)}
    subprocess.run(["npm", "run", "build"], cwd=SOURCES, env=environment, check=True, capture_output=True, timeout=300)
    for name in ("explorer.js", "explorer.css"):
        assert (tmp_path / name).read_bytes() == (SOURCES.parent / "rni" / "pages" / name).read_bytes()


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs node and npm")
@pytest.mark.skipif(not (SOURCES / "node_modules").exists(), reason="needs the explorer's packages: make explorer")
def test_the_modules_of_the_page_pass_their_own_tests():
    done = subprocess.run(["npm", "test"], cwd=SOURCES, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def test_the_lockfile_names_no_hosts():
    lock = (SOURCES / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in lock
    assert "://" not in re.sub(r'"(?:funding|url)": [^\n]*', "", lock)


def test_reading_a_network_file_does_not_need_its_snapshots(tmp_path):
    net = tmp_path / "net.safetensors"
    rni.save(rni.design(TWO, 30).network, net)
    beside(net).write_bytes(b"not safetensors")
    assert native.load(net).neurons == 30
    with pytest.raises(rni.InputError, match="whole safetensors file"):
        read(beside(net))

"""Plain arrays under our own names, as `rni export --to arrays` writes them."""

from collections.abc import Collection

from rni import weights
from rni.files.layouts.layout import LAYOUTS, FoundArrays, Layout, UnusedTensors


@LAYOUTS.register("arrays")
class Arrays(Layout):
    """The names of `rni.files.foreign.network_arrays`. Other names are refused, because they may be typos."""

    announced = False

    def recognises(self, names: Collection[str]) -> bool:
        return bool(set(weights.names()) & set(names))

    def read(self, tensors: UnusedTensors) -> FoundArrays:
        arrays, tensors.tensors = tensors.tensors, {}
        return FoundArrays("arrays", arrays, {"leak": (1.0, "")})

"""Patches that are written in Python: what the factory receives, what is replaced, and that it is put back."""

import traceback

import pytest
import torch
import transporters
from torch import nn
from transporters import DynamoExporter, ExportError, OnnxExporter

X = torch.linspace(-2, 3, 20).reshape(5, 4)


@pytest.fixture(autouse=True)
def own_registrations():
    with transporters.registrations():
        yield


class Gate(nn.Module):
    @staticmethod
    def scale(x):
        return x * 2

    @classmethod
    def shift(cls, x):
        return x + 1

    def mix(self, x):
        return x * x

    def forward(self, x):
        return self.shift(self.scale(self.mix(x)))


def helper(x):
    return x - 5


class Relu(nn.Module):
    def forward(self, x):
        return torch.relu(x)


class UsesHelper(nn.Module):
    def forward(self, x):
        return helper(x)


def test_a_patch_receives_the_original_and_is_gone_afterwards():
    seen = []

    @transporters.register_patch("dynamo", f"{__name__}.Gate.mix")
    def factory(original):
        seen.append(original)
        return lambda self, x: original(self, x) + 100

    before = dict(vars(Gate))
    exported = DynamoExporter().export(Gate(), (X,))
    assert seen == [Gate.mix]
    assert dict(vars(Gate)) == before
    assert torch.equal(exported(X), (X * X + 100) * 2 + 1)


def test_static_and_class_methods_stay_what_they_are():
    @transporters.register_patch("dynamo", f"{__name__}.Gate.scale")
    def scaled(original):
        return lambda x: original(x) * 10

    @transporters.register_patch("dynamo", f"{__name__}.Gate.shift")
    def shifted(original):
        return lambda cls, x: original(cls, x) - 7

    before = dict(vars(Gate))
    exported = DynamoExporter().export(Gate(), (X,))
    assert torch.allclose(exported(X), X * X * 20 + 1 - 7)
    assert dict(vars(Gate)) == before
    assert isinstance(vars(Gate)["scale"], staticmethod) and isinstance(vars(Gate)["shift"], classmethod)
    assert torch.equal(Gate()(X), X * X * 2 + 1)


def test_functions_of_a_module_and_of_torch_are_patched():
    @transporters.register_patch("dynamo", f"{__name__}.helper", "torch.relu")
    def factory(original):
        return lambda x: original(x) * 3

    assert torch.equal(DynamoExporter().export(UsesHelper(), (X,))(X), (X - 5) * 3)
    model = nn.Sequential(nn.Linear(4, 6), Relu(), nn.Linear(6, 3)).eval()
    original = torch.relu
    exported = DynamoExporter().export(model, (X,))
    assert torch.relu is original
    expected = model[2](torch.relu(model[0](X)) * 3)
    assert torch.allclose(exported(X), expected, atol=1e-5)


def test_later_patches_see_earlier_ones_and_one_can_be_taken_back():
    @transporters.register_patch("dynamo", f"{__name__}.helper")
    def doubled(original):
        return lambda x: original(x) * 2

    @transporters.register_patch("dynamo", f"{__name__}.helper")
    def raised(original):
        return lambda x: original(x) + 1

    assert torch.equal(DynamoExporter().export(UsesHelper(), (X,))(X), (X - 5) * 2 + 1)
    transporters.unregister(doubled)
    assert torch.equal(DynamoExporter().export(UsesHelper(), (X,))(X), X - 5 + 1)


def test_a_patch_is_for_its_backend_and_dynamo_ones_are_for_all():
    @transporters.register_patch("onnx", f"{__name__}.helper")
    def factory(original):
        return lambda x: original(x) * 2

    assert torch.equal(DynamoExporter().export(UsesHelper(), (X,))(X), X - 5)
    assert torch.equal(OnnxExporter().export(UsesHelper(), (X,))(X), (X - 5) * 2)
    transporters.unregister(factory)

    @transporters.register_patch("dynamo", f"{__name__}.helper")
    def everywhere(original):
        return lambda x: original(x) + 3

    assert torch.equal(OnnxExporter().export(UsesHelper(), (X,))(X), X - 5 + 3)


def test_patches_are_taken_back_when_the_export_fails():
    @transporters.register_patch("dynamo", f"{__name__}.helper")
    def failing(original):
        def replacement(x):
            raise LookupError("not here")

        return replacement

    original = helper
    with pytest.raises(ExportError, match="LookupError: not here") as caught:
        DynamoExporter().export(UsesHelper(), (X,))
    assert helper is original
    assert isinstance(caught.value.__cause__, LookupError)
    assert any(frame.name == "replacement" for frame in traceback.extract_tb(caught.value.__cause__.__traceback__))


def test_a_factory_that_fails_leaves_the_others_undone():
    @transporters.register_patch("dynamo", f"{__name__}.helper")
    def fine(original):
        return lambda x: original(x) * 2

    @transporters.register_patch("dynamo", f"{__name__}.Gate.mix")
    def failing(original):
        raise LookupError("no factory")

    original = helper
    with pytest.raises(LookupError, match="no factory"):
        DynamoExporter().export(UsesHelper(), (X,))
    assert helper is original


@pytest.mark.parametrize(
    "path, message",
    [
        (f"{__name__}.Gate.absent", "there is no 'absent'"),
        (f"{__name__}.Absent.mix", "has no 'Absent'"),
    ],
)
def test_a_path_that_does_not_exist_is_an_error(path, message):
    transporters.register_patch("dynamo", path)(lambda original: original)
    with pytest.raises(ExportError, match=message):
        DynamoExporter().export(UsesHelper(), (X,))


def test_a_path_of_a_missing_module_is_skipped():
    transporters.register_patch("dynamo", "no_such_package.Model.forward")(lambda original: original)
    assert torch.equal(DynamoExporter().export(UsesHelper(), (X,))(X), X - 5)


def test_wrong_registrations_are_refused():
    with pytest.raises(ExportError, match="unknown backend 'onx'.*'onnx'"):
        transporters.register_patch("onx", "torch.relu")
    with pytest.raises(ExportError, match="needs the dotted paths"):
        transporters.register_patch("onnx")
    with pytest.raises(ExportError, match="'relu' is no dotted path"):
        transporters.register_patch("onnx", "relu")
    with pytest.raises(ExportError, match="unknown backend"):
        transporters.register_fx_node_fix("tensorrt")
    with pytest.raises(ExportError, match="needs the ops"):
        transporters.register_onnx_translation()
    with pytest.raises(ExportError, match="'gelu' is no op name"):
        transporters.register_onnx_translation("gelu")(lambda lowering, node: None)

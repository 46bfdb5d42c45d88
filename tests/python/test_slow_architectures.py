"""Architectures that transformers' own tests leave out of exports with dynamic sizes, because they take over ten
minutes or end without a result: each exports in seconds, and is right at other sizes and batches than the traced
ones."""

import pytest
from coverage_setup import needs_zoo
from harness import cases
from harness.check import Case, check_mode
from harness.exporters import Transporters

SECONDS = 15  # an export takes tenths of one; the machine may be busy

CASES = [
    "swin/SwinModel",
    "swin/SwinForMaskedImageModeling",
    "swinv2/Swinv2Model",
    "donut-swin/DonutSwinModel",
    "maskformer-swin/MaskFormerSwinBackbone",
    "maskformer/MaskFormerForInstanceSegmentation",
    "mask2former/Mask2FormerForUniversalSegmentation",
    "big_bird/BigBirdModel",
    "big_bird/BigBirdForCausalLM",
    "big_bird/BigBirdForMaskedLM",
    "big_bird/BigBirdForMultipleChoice",
    "big_bird/BigBirdForPreTraining",
    "big_bird/BigBirdForQuestionAnswering",
    "big_bird/BigBirdForSequenceClassification",
    "big_bird/BigBirdForTokenClassification",
    "grounding-dino/GroundingDinoForObjectDetection",
    "mm-grounding-dino/MMGroundingDinoForObjectDetection",
    "sam2_vision_model/Sam2VisionModel",
    "hiera/HieraForPreTraining",
    "timesformer/TimesformerForVideoClassification",
    "efficientnet/EfficientNetForImageClassification",
    "seamless_m4t/SeamlessM4TForSpeechToText",
    "seamless_m4t_v2/SeamlessM4Tv2ForSpeechToText",
]


@pytest.fixture(scope="module")
def exporter(build_dir):
    return Transporters()


@needs_zoo
@pytest.mark.parametrize("name", CASES)
def test_exports_in_seconds_and_verifies_at_other_sizes(exporter, name):
    assert name in cases.zoo().list_cases()
    case = Case(name)
    assert case.other_sizes, "eager takes no other sizes"
    for mode in ("dynamo-dynamic", "onnx-dynamic"):
        record = check_mode(case, exporter, mode, every=0)
        assert record["status"] == "passed", f"{mode} [{record['stage']}] {record['reason']} {record['where']}"
        assert {variation.name for variation in case.other_sizes} <= set(record["verified"])
        assert record["export_s"] < SECONDS

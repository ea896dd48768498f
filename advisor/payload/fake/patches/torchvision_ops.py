"""torchvision can be imported although its C++ operators cannot be loaded.

Its wheels are built for one build of torch; beside another (a CUDA wheel and a CPU torch, as on most
machines without a GPU) the extension fails to load and the import breaks at the first operator's shape
rule. The rules need only the operators' schemas, so those are declared when that has happened.
"""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from ...importing import when_imported

if TYPE_CHECKING:
    from advisor.payload.session import Session

_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_CONVOLUTION = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w,"
    " SymInt groups, SymInt offset_groups, bool use_mask"
)
_SCHEMAS = (
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor",
    (
        "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale,"
        f" int rois_zero_point, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor"
    ),
    (
        f"_roi_align_backward(Tensor grad, Tensor rois, {_POOLED}, {_SIZES}, int sampling_ratio,"
        " bool aligned) -> Tensor"
    ),
    f"roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_POOLED}, {_SIZES}) -> Tensor",
    f"ps_roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio) -> (Tensor, Tensor)",
    (
        f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED},"
        f" int sampling_ratio, {_SIZES}) -> Tensor"
    ),
    f"ps_roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)",
    (
        f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, {_SIZES})"
        " -> Tensor"
    ),
    (
        f"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_CONVOLUTION})"
        " -> Tensor"
    ),
    (
        "_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask,"
        f" Tensor bias, {_CONVOLUTION}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
    ),
)


def install(session: Session) -> None:
    """Look at torchvision's extension when it is imported."""

    def declare_if_missing(extension: ModuleType) -> None:
        if not extension._has_ops():
            _declare(session)
            # Older versions have no gradients in Python: their operators must go on refusing.
            if importlib.util.find_spec("torchvision._autograd_registrations") is not None:
                extension.__dict__.update(_has_ops=lambda: True, _check_cuda_version=lambda: -1)

    when_imported("torchvision.extension", declare_if_missing)


def _declare(session: Session) -> None:
    # The library object must outlive the process.
    session.torchvision_library = library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)

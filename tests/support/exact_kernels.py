"""PyTorch on a card with the kernels that vpp asks for there (lib/device/device.cpp)."""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before the first product on a card

import torch  # noqa: E402


def use_exact_kernels(exact: bool = True) -> None:
    """Or, with False, those that PyTorch takes unasked."""
    torch.use_deterministic_algorithms(exact)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = exact
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = not exact
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.enable_cudnn_sdp(not exact)
    torch.autograd.set_multithreading_enabled(not exact)

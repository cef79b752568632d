"""PyTorch models to Lockstep and back: export, load, stats."""

from ._export import export
from ._load import checkpoint_folder, load, read_weights
from ._stats import stats

__all__ = ["checkpoint_folder", "export", "load", "read_weights", "stats"]
__version__ = "0.1.0"

"""What a run trained, in formats that other libraries load."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sortie.core.run_folder import RunFolder
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.session import last_checkpoint


def export_run(run: RunFolder, folder: Path, form: Literal["peft", "merged"] = "peft") -> Path:
    """Write the run's last adapter to `folder`: as a PEFT adapter, or merged into the weights of its model.

    Raises: UsageError if the run has no checkpoint, its model is not to be had, or `folder` has files or cannot be
    written.
    """
    from sortie import models
    from sortie.models.config import DecoderConfig
    from sortie.models.export import export_adapter, export_merged
    from sortie.training.checkpoints import lora_of

    checkpoint = last_checkpoint(run)
    config = RunConfig.from_toml(run.config_text(), source=str(run.path / "config.toml"))
    base = models.resolve(config.model)
    lora, _ = lora_of(checkpoint, DecoderConfig.read(base))
    if form == "merged":
        return export_merged(lora, base, folder)
    return export_adapter(lora, folder, base=config.model)

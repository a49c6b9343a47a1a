"""Messages to tokens and back, one renderer per model family."""

from sortie.inference.renderers.base import Renderer
from sortie.inference.renderers.choose import renderer_for

__all__ = ["Renderer", "renderer_for"]

"""`sortie`: one small module per verb or noun.

Exit codes: 0 done, 1 it went wrong, 2 it was asked for wrongly, 130 stopped by Ctrl-C. What the user can put right is
one line on stderr; anything unexpected keeps its traceback.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

import click

from sortie.cli.chat import chat
from sortie.cli.doctor import doctor
from sortie.cli.env import env
from sortie.cli.evaluate import evaluate
from sortie.cli.export import export
from sortie.cli.model import model
from sortie.cli.rollout import rollout
from sortie.cli.runs import runs
from sortie.cli.schedule import schedule
from sortie.cli.train import train
from sortie.core.errors import SortieError, UsageError

STOPPED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="sortie-rl", prog_name="sortie")
def cli() -> None:
    """Train LLM agents by reinforcement learning, from a laptop CPU up.

    \b
    Start here:
      sortie train recipes/quickstart/run.toml     train a real model to use tools
      sortie rollout arithmetic --model smollm2-135m --show
    """


for command in (train, evaluate, rollout, chat, export, runs, schedule, env, model, doctor):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s", stream=sys.stderr)
    try:
        return int(cli.main(args=arguments, prog_name="sortie", standalone_mode=False) or 0)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.UsageError as error:
        where = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
        return _fail(f"{error.format_message()}{where}", 2)
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except UsageError as error:
        return _fail(str(error), 2)
    except SortieError as error:
        return _fail(str(error), 1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("stopped", err=True)
        return STOPPED
    except BrokenPipeError:  # the reader went away, as `sortie runs list | head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _fail(message: str, code: int) -> int:
    for line in message.splitlines():
        click.echo(f"error: {line}", err=True)
    return code

"""What a run's task scheduler predicted, spent and learned: `explain_run(RunFolder.open("NAME"))`."""

from sortie.orchestrator.schedule.report import ScheduleReport, explain_run

__all__ = ["ScheduleReport", "explain_run"]

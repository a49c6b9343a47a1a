"""python -m benchmarks.scheduling --world NAME [--seeds 20] [--schedulers a,b,...] [--quick] [--json]."""

from benchmarks.scheduling.cli import main

if __name__ == "__main__":
    main()

"""What many workers would cost: a chunk on disk, a task of the scheduler, and 1,000 workers that die at random.

python benchmarks/scaling.py [chunks] [tasks] [deaths] [speed] [memory] [--workers 1000]

The workers of the last part are virtual (they wait instead of sampling) and live in this process; the scheduler, its
messages and its recovery are Dask's own.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import tempfile
import time
from pathlib import Path

import numpy as np

from crossfade.runs.chunks import Chunks


def chunks() -> None:
    """Seconds to write and to find again a chunk of one segment: 32 chains, 25 draws."""
    for size in (5, 50, 500):
        shape = (25, 32, size)
        arrays = {name: np.random.default_rng(0).normal(size=shape) for name in ("z", "u", "slope")}
        with tempfile.TemporaryDirectory() as folder:
            own = Chunks(Path(folder), print)
            began = time.perf_counter()
            for k in range(20):
                own.add(f"segment {k}", arrays)
                own.flush()
            written = (time.perf_counter() - began) / 20
            n_bytes = sum(path.stat().st_size for path in Path(folder).glob("*.npz")) / 20
            began = time.perf_counter()
            again = Chunks(Path(folder), print)
            listed = (time.perf_counter() - began) / 20
            began = time.perf_counter()
            for k in range(20):
                assert again.find(f"segment {k}") is not None
            found = (time.perf_counter() - began) / 20
        print(
            f"{size:4d} parameters: {n_bytes / 1e6:6.2f} MB a chunk, {1e3 * written:5.1f} ms to write and sync, "
            f"{1e3 * listed:5.2f} ms to list, {1e3 * found:5.1f} ms to check and read"
        )


def tasks(n: int = 2000) -> None:
    """What a task costs on a local cluster of two processes, with 100 kB sent back."""
    from crossfade.runs.workers import cluster, worked

    def answer(_):
        return bytes(100_000)

    with cluster(2) as client:
        client.submit(int, 1).result()
        began = time.perf_counter()
        n_done = sum(1 for _ in worked(client, [(f"task {k}", answer, (k,)) for k in range(n)], print))
        seconds = time.perf_counter() - began
    print(f"{n_done} tasks on 2 processes: {1e3 * seconds / n_done:.2f} ms each, everything included")


def speed() -> None:
    """Two processes beside one, on two cores; programs are compiled and kept on disk before."""
    from ranking import hierarchy_models

    from crossfade.papers import biopathway
    from crossfade.papers.jobs import run_jobs
    from crossfade.ranking import rank
    from crossfade.runs.workers import cluster

    jobs = [job for job in biopathway.jobs(False, 1) if job.name.startswith(("auto", "neti"))]
    models = hierarchy_models()

    def quiet(_):
        pass

    def experiments(n_workers):
        with tempfile.TemporaryDirectory() as folder:
            run_jobs(jobs, Path(folder), n_workers, quiet)

    def ranking(n_workers):
        with cluster(n_workers if n_workers > 1 else None) as client:
            rank(models, target_se=0.005, budget=1200, client=client, progress=False)

    for name, work in ((f"{len(jobs)} experiments of biopathway", experiments), ("a ranking of ten models", ranking)):
        took = {}
        for n_workers in (1, 1, 2):  # the first one compiles
            began = time.perf_counter()
            work(n_workers)
            took[n_workers] = time.perf_counter() - began
        print(f"{name}: {took[1]:.1f} s alone, {took[2]:.1f} s by two processes, {took[1] / took[2]:.2f} times as fast")


def memory() -> None:
    """The most that a run of ten million draws of a ratio takes, by the paper's method and by the default one."""
    import resource

    import crossfade
    from crossfade.worlds import linear

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    pair = linear.radiata()
    result = crossfade.compare(*pair, method="NETI-DIFF", n_iter=10_000_000 // 64, n_chains=32)
    n = sum(t.log_ratio.size for leg in result.legs for t in (leg.forward, leg.reverse) if t is not None)
    print(f"NETI-DIFF, {n:,} ratios: {result.log_bayes_factor.value:.4f}, at most {peak():.2f} GB")
    result = crossfade.compare(*pair, target_se=1e-9, budget=f"{10_000_000 // 2} draws", route="path", progress=False)
    n = sum(t.log_ratio.size for leg in result.legs for t in (leg.forward, leg.reverse) if t is not None)
    print(f"default, {n:,} ratios: {result.log_bayes_factor.value:.4f}, at most {peak():.2f} GB")


async def deaths(n_workers: int, n_tasks: int, seconds: float = 2.0) -> None:
    from distributed import Client, Scheduler, Worker

    n_deaths = n_workers // 10
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # deaths are what is looked at
    began = time.perf_counter()
    async with Scheduler(protocol="inproc://", dashboard_address=":0") as scheduler:
        workers = [Worker(scheduler.address, nthreads=1, name=k) for k in range(n_workers)]
        await asyncio.gather(*workers)
        async with Client(scheduler.address, asynchronous=True) as client:
            ready = time.perf_counter()
            print(f"{n_workers} workers are there after {ready - began:.1f} s")

            async def wait(k):
                await asyncio.sleep(seconds)
                return k

            before = time.process_time()
            futures = client.map(wait, range(n_tasks), pure=False, retries=0, key="sample")
            chance, dying = random.Random(0), []

            async def kill():
                for _ in range(n_deaths):
                    await asyncio.sleep(seconds * n_tasks / n_workers / n_deaths)
                    victim = workers.pop(chance.randrange(len(workers)))
                    victim.batched_stream.comm.abort()  # as if its machine were gone
                    dying.append(asyncio.create_task(victim.close(timeout=0, executor_wait=False)))
                    late = Worker(scheduler.address, nthreads=1)  # another one joins later
                    workers.append(await late)

            killing = asyncio.create_task(kill())
            found = await client.gather(futures)
            took, cpu = time.perf_counter() - ready, time.process_time() - before
            killing.cancel()
            assert found == list(range(n_tasks))
            ideal = seconds * n_tasks / n_workers
            print(f"{n_tasks} tasks of {seconds:g} s on {n_workers} workers, {n_deaths} of which die and are replaced:")
            print(f"all done in {took:.1f} s (at best {ideal:.1f} s); {1e3 * cpu / n_tasks:.2f} ms of CPU a task, for")
            print("scheduler, client and all workers together")
        await asyncio.gather(*(worker.close(timeout=0, executor_wait=False) for worker in workers))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["chunks", "tasks", "deaths"])
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=5000)
    given = parser.parse_args()
    if "chunks" in given.parts:
        chunks()
    if "tasks" in given.parts:
        tasks()
    if "speed" in given.parts:
        speed()
    if "memory" in given.parts:
        memory()
    if "deaths" in given.parts:
        asyncio.run(deaths(given.workers, given.tasks))

from __future__ import annotations

@click.command()
@store_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--status", "wanted", multiple=True, type=click.Choice([*STATUSES, "regressed"]), help="May be repeated.")
@click.option("--executor", default="*", metavar="PATTERN")
@click.option("--signature", default="*", metavar="PATTERN")
@click.option("--verdict", default="*", metavar="PATTERN")
@campaign_option
@click.option("--mark", type=click.Choice(STATUSES), help="Say this of all that is listed; later campaigns know it.")
@click.option("--note", default="", help="With --mark: a page, a link, a reason.")
@click.option("--bundles", metavar="DIR", help="Write the bundles of what is listed.")
@json_option
def findings(
    store: str, ids: tuple[str, ...], wanted: tuple[str, ...], executor: str, signature: str, verdict: str,
    campaign: int | None, mark: str | None, note: str, bundles: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List the findings of a store, or mark them, or write their bundles."""
    if note and not mark:
        raise UsageError(detail="--note goes with --mark")
    with Store(store) as opened:
        streams = None if campaign is None else shards(opened, campaign)

        def select() -> list[Listed]:
            return [
                row
                for row in listed(opened, streams)
                if (not ids or any(row.id.startswith(i) for i in ids))
                and fnmatchcase(row.found.finding.signature, signature)
                and fnmatchcase(row.found.finding.verdict, verdict)
                and any(fnmatchcase(e, executor) for e in (*row.executors, row.found.finding.executor))
            ]

        rows = [row for row in select() if not wanted or row.status in wanted]
        for name in ids:
            if not any(row.id.startswith(name) for row in rows):
                raise UsageError(detail=f"{store}: no finding {name!r} is listed")
        if mark:
            if mark != "new" and not (ids or wanted or (executor, signature, verdict) != ("*", "*", "*")):
                raise UsageError(detail="--mark without an ID or a filter would mark everything")
            for row in rows:
                opened.mark(row.found.finding.signature, mark, note)
            marked = {row.id for row in rows}
            rows = [row for row in select() if row.id in marked]
        if bundles:
            _write_bundles(opened, rows, Path(bundles))
    for row in rows:
        if as_json:
            print_json(_finding_json(row))
        else:
            click.echo(_line(row))


def _line(row: Listed) -> str:
    finding, sure = row.found.finding, {True: "", False: ", UNCONFIRMED", None: ""}[row.found.confirmed]
    why = f", {row.why}" if row.why else ""
    status = row.status.upper() if row.is_new else row.status
    return f"{status:9}{row.id}  {finding.signature}  [{finding.executor}, {row.programs} programs{why}{sure}]"


def _finding_json(row: Listed) -> dict[str, Any]:
    content: dict[str, Any] = encode(row.record)
    return {
        "id": row.id,
        "status": row.status,
        "why": row.why,
        "confirmed": row.found.confirmed,
        "confirmed_in_fresh_venv": row.found.afresh,
        "seconds_to_bundle": round(row.found.seconds, 3),
        "first_seen": row.first and date(row.first),
        "last_seen": row.last and date(row.last),
        "marks": [{"status": m.status, "note": m.note, "date": date(m.at)} for m in row.marks],
        **content,
    }


def _write_bundles(store: Store, rows: list[Listed], folder: Path) -> None:
    environments = {s.environment for s in store.streams()[-1:]}
    pool = Pool()
    try:
        for row in rows:
            executor = pool.make(row.record.executor)
            environment = next(iter(environments), ())
            bundle.write_bundle(folder / row.id, row.record, executor, row.found.case, environment)
    finally:
        pool.close()


@click.command()
@click.argument("folder", metavar="BUNDLE")
@click.option("--executor", default="", metavar="NAME", help="Another one than it was found on.")
@click.option("--fresh-venv", is_flag=True, help="Run the bundle's script in a virtual environment made for it.")
@json_option
def replay(folder: str, executor: str, fresh_venv: bool, as_json: bool) -> int:
    """Say whether a bundle still fails: exit status 1 while it does, 0 when it is gone."""
    path = Path(folder)
    if fresh_venv:
        if executor:
            raise UsageError(detail="--fresh-venv runs the script as it is: leave out --executor")
        with FreshEnvironments() as environments:
            shown = bundle.confirm(path, environments)
        click.echo("still fails in a fresh environment" if shown else "not shown in a fresh environment")
        return 1 if shown else 0
    pool = Pool()
    try:
        result = bundle.replay(path, pool, executor)
    finally:
        pool.close()
    answer = result.answer
    if as_json:
        print_json(
            {
                "bundle": folder, "outcome": result.outcome, "executor": answer.executor, "verdict": answer.verdict.value,
                "reason": answer.reason, "same_bits": result.same_bits,
            }
        )  # fmt: skip
    else:
        bits = {True: ", the recorded values", False: ", other values than recorded", None: ""}[result.same_bits]
        click.echo(f"{result.outcome}: {answer.executor} {answer.verdict.value} {answer.reason}".rstrip() + bits)
    return 0 if result.outcome == "gone" else 1


@click.command()
@click.argument("target", metavar="STORE|BUNDLE")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="Budget each."
)
@click.option("--max-findings", type=click.IntRange(1), default=1000, show_default=True)
@campaign_option
@click.option("--bundles", metavar="DIR", help="Folder of the findings' bundles; default: STORE.findings.")
def reduce(target: str, seconds: float, max_findings: int, campaign: int | None, bundles: str | None) -> None:
    """Reduce what a campaign left unreduced, or a bundle further."""
    pool = Pool()
    try:
        with progress_bar("reducing", None) as update:
            if Path(target).is_dir():
                _reduce_bundle(Path(target), seconds, pool, update)
                return
            with Store(target) as store, Lock(target):
                store.release()
                for stream in shards(store, campaign):
                    store.retry_kins(stream.id)
                    plan = dataclasses.replace(stream.plan, reduce_seconds=seconds, max_findings=max_findings)
                    executors = [pool.make(name) for name in stream.available]

                    def tell(progress: Progress) -> None:
                        update(progress.done, progress.total, "reducing disagreements")

                    folder = Path(bundles or f"{target}.findings")
                    site = dataclasses.replace(stream, plan=plan)
                    reduce_rest(Worksite(store, site, executors, pool, bundles=folder, progress=tell))
                for row in listed(store, shards(store, campaign)):
                    click.echo(_line(row))
    finally:
        pool.close()


def _reduce_bundle(folder: Path, seconds: float, pool: Pool, update: Callable[..., None]) -> None:
    facts, case = bundle.read_bundle(folder)
    result = bundle.replay(folder, pool)
    if result.outcome == "gone":
        raise UsageError(detail=f"{folder}: does not fail any more")

    def tell(tests: int, size: Size) -> None:
        update(tests, None, f"reducing: {size}")

    executor = pool.make(facts.executor)
    suspect = inspect(executor, case, result.answer, pool)
    finding, smaller = to_finding(suspect, pool, (), programs=1, also=(), budget_seconds=seconds, progress=tell)
    bundle.write_bundle(folder, finding, executor, smaller, facts.environment)
    click.echo(f"{finding.signature}: {finding.original_instructions} -> {finding.instructions} instructions")


@click.command()
@click.argument("target", metavar="A")
@click.argument("sources", nargs=-1, required=True, metavar="B...")
def merge(target: str, sources: tuple[str, ...]) -> None:
    """Bring the campaigns and findings of stores B into store A, which is made if it is not there."""
    for source in sources:
        if not Path(source).is_file():
            raise FormatError(where=source, detail="no such findings store")
    with Store(target, create=True) as store, Lock(target):
        for source in sources:
            merge_stores(store, source)
        rows = listed(store)
        programs = sum(store.done(s.id)[0] for s in store.streams())
    for row in rows:
        click.echo(_line(row))
    click.echo(f"{target}: {programs} programs, {len(rows)} findings")



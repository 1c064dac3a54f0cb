"""From a group of disagreements to a finding in the store."""

from __future__ import annotations

import dataclasses
import time
from functools import partial

from fuzz.campaign.worksite import Worksite
from fuzz.findings.bundle import confirm, write_bundle
from fuzz.findings.explain import explained
from fuzz.findings.known import load_known
from fuzz.findings.suspect import Suspect
from fuzz.findings.triage import answer_of, still_disagrees, to_finding
from fuzz.records import Finding
from fuzz.store import Group, StoredFinding
from oracle.case import Case
from oracle.verdict import Verdict

#: How much longer than the first a second attempt at reducing may take.
_LONGER = 2
#: A group that has waited for so many seconds is reduced before more programs are checked, as long as reducing has not taken
#: more than this share of the time.
_WAIT, _SHARE = 15.0, 0.5


def reduce_all(site: Worksite) -> None:
    """Reduce groups until there is none to take."""
    while _reduce_one(site):
        pass


def reduce_some(site: Worksite) -> None:
    """Reduce one group, and then those that have waited long, unless reducing has had more than its share of the time."""
    while _reduce_one(site):
        seen = site.store.longest_waiting(site.stream.id)
        if seen is None or time.time() - seen < _WAIT or site.spent["reduce"] > _SHARE * sum(site.spent.values()):
            return


def _reduce_one(site: Worksite) -> bool:
    """Make a finding of one group; False if there is none to take."""
    site.lap("check")
    group = site.store.claim_group(site.stream.id, site.owner, site.stream.plan.max_findings)
    if group is None:
        return False
    site.report("reduce")
    smallest = group.smallest
    executor = site.by_name[smallest.answer.executor]
    where = smallest.op, smallest.dtype, smallest.attribution
    suspect = Suspect(executor, smallest.case, smallest.answer, *where)
    if (found := _of_another_build(site, group, suspect)) is not None:
        site.store.settle(group, found.finding, found.case, None)
        site.lap("reduce")
        return True
    finding, case = _reduced(site, group, suspect)
    # a configuration that was drawn has been settled, and made simpler
    named = executor if finding.executor == executor.name else site.pool.make(finding.executor)
    finding, confirmed = explained(finding, named, case), None
    if site.bundles is not None:
        folder = site.bundles / finding.id
        write_bundle(folder, finding, named, case, site.stream.environment)
        if site.confirms:
            finding = dataclasses.replace(finding, unconfirmed=confirm(folder, allowed=(executor.name,)))
            confirmed = not finding.unconfirmed
    site.store.settle(group, finding, case, confirmed)
    site.lap("reduce")
    site.flush()
    return True


def _of_another_build(site: Worksite, group: Group, suspect: Suspect) -> StoredFinding | None:
    """The finding of another build's group of the same cause, if this build gets its reduced program wrong as well."""
    disagrees = still_disagrees(suspect, site.pool)
    found = filter(None, map(site.store.finding, group.alike))
    return next((f for f in found if f.finding.verdict != Verdict.TIMEOUT.value and disagrees(f.case)), None)


def _reduced(site: Worksite, group: Group, suspect: Suspect) -> tuple[Finding, Case]:
    """The finding; where the budget ran out and no rule knows the signature, after a second and longer attempt, if it repeats.

    A program that is not minimal has a signature of its own, which would make something known look new.
    """
    budget = site.stream.plan.reduce_seconds
    attempt = partial(to_finding, pool=site.pool, known=load_known(), programs=group.programs, also=group.also)
    finding, case = attempt(suspect, budget_seconds=budget)
    if finding.known or finding.reduce_seconds < budget or not budget:
        return finding, case
    again = answer_of(suspect.executor, case)
    if not again.verdict.is_disagreement:
        return finding, case
    longer, case = attempt(dataclasses.replace(suspect, case=case, answer=again), budget_seconds=_LONGER * budget)
    seconds = finding.reduce_seconds + longer.reduce_seconds
    original = finding.original_instructions
    return dataclasses.replace(longer, original_instructions=original, reduce_seconds=seconds), case

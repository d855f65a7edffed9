"""The heartbeat's terms from the settings file."""

from wakeful.config.check import pre_check
from wakeful.config.tables import Heartbeat
from wakeful.core.heartbeat.acknowledgement import AckRules
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.features.heartbeat.rules import HeartbeatTerms


def terms_of(written: Heartbeat, *, local_zone: str) -> HeartbeatTerms:
    """The terms of a `[heartbeat]` table on a machine in this zone."""
    hours = written.active_hours
    return HeartbeatTerms(
        enabled=written.enabled,
        agent=written.agent,
        every=written.every,
        session=written.session,
        model=written.model,
        prompt=written.full_prompt,
        check=None if written.check is None else pre_check(written.check),
        ack=AckRules(written.ack_token, written.ack_chars_max, written.ack_match),
        beats=BeatRules(
            hours=None if hours is None else hours.in_zone(local_zone),
            spacing_min=written.spacing_min,
            turns_per_hour_max=written.turns_per_hour_max,
        ),
    )

"""Subscriptions under a new definition: which consumers read which topics, and what happens to a consumer's messages
when it leaves a topic.

A new consumer on a topic gets what is published from then on. It inherits another consumer's messages if it is the only
new one on the topic and the other one left it in the same deploy (a rename), or if the topic had no consumer before.
Without such an heir, messages stay pending under the old name until a consumer of that name is deployed again or a
person skips them; the deploy returns a warning.
"""

from wakeful.core.workflow.definition import WorkflowDefinition
from wakeful.core.workflow.rows import Subscription, Topic
from wakeful.core.workflow.rules import WorkflowState
from wakeful.features.workflows.message_rows import Messages
from wakeful.features.workflows.publishing import NO_CONSUMER
from wakeful.features.workflows.state_rows import Subscriptions
from wakeful.ports.store import Tx


def subscribed(tx: Tx, flow: WorkflowState, definition: WorkflowDefinition) -> tuple[WorkflowState, list[str]]:
    """The flow with topics and subscriptions of the definition, and warnings for its author."""
    workflow_id = flow.workflow.workflow_id
    readers = definition.topics
    topics = {name: Topic(workflow_id, name, 0) for name in readers} | dict(flow.topics)
    subscriptions = dict(flow.subscriptions)
    warnings: list[str] = []
    for topic in topics:
        wanted = readers.get(topic, [])
        had = [
            subscription.consumer
            for subscription in subscriptions.values()
            if subscription.topic == topic and subscription.is_active
        ]
        left = [name for name in had if name not in wanted]
        new = [name for name in wanted if (topic, name) not in subscriptions]
        for name in wanted:
            known = subscriptions.get((topic, name), Subscription(workflow_id, topic, name, 0, 0, 1))
            subscriptions[topic, name] = known._replace(is_active=1)
        held = [
            subscription.consumer
            for subscription in subscriptions.values()
            if subscription.topic == topic and subscription.consumer not in wanted
        ]
        predecessors = left if had else held
        if len(new) == 1 and len(predecessors) == 1:
            _inherit(tx, flow, subscriptions, topic, predecessors[0], new[0], warnings)
        for name in left:
            if (topic, name) in subscriptions:
                _leave(tx, flow, subscriptions, topic, name, warnings)
    return flow._replace(topics=topics, subscriptions=subscriptions), warnings


def _inherit(
    tx: Tx,
    flow: WorkflowState,
    subscriptions: dict[tuple[str, str], Subscription],
    topic: str,
    before: str,
    heir: str,
    warnings: list[str],
) -> None:
    """The only new consumer of a topic replaces the only one that left it."""
    workflow_id = flow.workflow.workflow_id
    known = subscriptions.pop((topic, before))
    subscriptions[topic, heir] = known._replace(consumer=heir, is_active=1)
    tx[Subscriptions].remove_one(workflow_id, topic, before)
    pending = tx[Messages].hand_over(workflow_id, topic, before, heir)
    if pending and before != NO_CONSUMER:
        warnings.append(f"consumer '{heir}' takes over {_messages(pending)} of '{topic}' from '{before}'")


def _leave(
    tx: Tx,
    flow: WorkflowState,
    subscriptions: dict[tuple[str, str], Subscription],
    topic: str,
    name: str,
    warnings: list[str],
) -> None:
    """A consumer that leaves a topic keeps its pending messages under its name."""
    workflow_id = flow.workflow.workflow_id
    counts = tx[Messages].counts([workflow_id]).get((workflow_id, topic, name), {})
    left = counts.get("pending", 0) + counts.get("reserved", 0)
    if not left:
        del subscriptions[topic, name]
        tx[Subscriptions].remove_one(workflow_id, topic, name)
        return
    subscriptions[topic, name] = subscriptions[topic, name]._replace(is_active=0)
    warnings.append(
        f"consumer '{name}' no longer reads '{topic}' and leaves {_messages(left)} in it; they stay pending "
        f"until a consumer of that name reads the topic again, or: "
        f"wakeful workflows skip {flow.workflow.name} {topic} --all --consumer {name}"
    )


def _messages(count: int) -> str:
    return "1 pending message" if count == 1 else f"{count} pending messages"

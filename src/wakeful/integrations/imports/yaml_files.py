"""YAML files of other programs: plain data, whatever tags they have."""

from typing import Any

from wakeful.integrations.imports.entries import SourceFile, SourceRefused
from wakeful.integrations.imports.places import checked_text


def yaml_documents(file: SourceFile) -> list[Any]:
    """The documents of a file. A tag of another program, such as `!secret`, is read as its text."""
    import yaml  # type: ignore[import-untyped]  # few programs need it; its stubs are a package of their own

    class Plain(yaml.SafeLoader):  # type: ignore[misc]  # a class of its own, so that no other reader gets its tags
        """Plain data only."""

    Plain.add_multi_constructor("!", lambda _, tag, node: f"!{tag} {getattr(node, 'value', '')}")
    try:
        for event in yaml.parse(file.text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):  # a few of them can name billions of values
                raise SourceRefused(file.place, "it uses aliases; write it without them", event.start_mark.line + 1)
        documents: list[Any] = checked_text(list(yaml.load_all(file.text, Loader=Plain)), file)
        return documents
    except (RecursionError, OverflowError):
        raise SourceRefused(file.place, "it is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = str(getattr(error, "problem", None) or "it cannot be read")
        raise SourceRefused(file.place, f"it is not YAML ({reason})", mark.line + 1 if mark else None) from None

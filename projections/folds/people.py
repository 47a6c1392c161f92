"""The people of an installation, folded from the principals that were published."""

import json
import logging

from schemas.policy_problems import PolicyRefused
from schemas.principals import People, principal_from_value

logger = logging.getLogger(__name__)


def with_published(people: People, tenant: str, project: str, name: str, document: str) -> People:
    """The people after a version of a principal was published.

    As in the decider, a principal whose document cannot be read has no roles: it is of a later version, and its
    meaning must not be guessed.

    Args:
        people: before it.
        tenant: the principal's tenant.
        project: its project; `*` for the whole tenant.
        name: its name.
        document: its document, JSON.
    """
    try:
        return people.with_principal(tenant, principal_from_value(json.loads(document)), project)
    except PolicyRefused as error:
        logger.error("the principal %s of %s has no permissions: %s", name, tenant, error)
        return people.without_roles(tenant, name, project)

"""Django: the default of a BigIntegerField, and a field that shows IDs as text.

In the settings, each entry has `local` or `store`, and keyword arguments of `ringflake.local` or
`ringflake.open`. The width is "positive", unless "js_safe" is given:

    RINGFLAKE = {"default": {"local": "shop"}}

In the models:

    from ringflake.django import IdTextField, take

    class Order(models.Model):
        id = models.BigIntegerField(primary_key=True, default=take, editable=False)

    class Customer(models.Model):
        id = IdTextField("customer", primary_key=True, default=take, editable=False)

A number above 2**53 loses digits in JavaScript. Where a browser reads IDs, use an `IdTextField`
or `"width": "js_safe"`.
"""

# Django comes without types.
# mypy: disable-error-code="import-untyped, misc, type-arg"

from __future__ import annotations

import functools
from typing import Any, Optional

import django.forms
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.signals import setting_changed
from django.db import models
from django.utils.deconstruct import deconstructible

import ringflake
from ringflake import _values, to_text

__all__ = ["IdTextField", "Take", "generator", "take"]


@functools.lru_cache(maxsize=None)
def generator(alias: str = "default") -> ringflake.Generator:
    """The generator of this entry of `settings.RINGFLAKE`, opened at its first use.

    It can be called before the server forks, and from any thread.
    """
    try:
        options = dict(settings.RINGFLAKE[alias])
    except (AttributeError, KeyError):
        raise ImproperlyConfigured(f"settings.RINGFLAKE has no entry {alias!r}") from None
    if options.setdefault("width", "positive") == "full":
        raise ImproperlyConfigured(
            f"settings.RINGFLAKE[{alias!r}]: half of the IDs of width \"full\" exceed a "
            'BigIntegerField; use "positive" or "js_safe"'
        )
    local, store = options.pop("local", None), options.pop("store", None)
    if (local is None) == (store is None):
        raise ImproperlyConfigured(f"settings.RINGFLAKE[{alias!r}] needs either `local` or `store`")
    if local is not None:
        return ringflake.local(local, **options)
    return ringflake.open(store, **options)


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "RINGFLAKE":
        generator.cache_clear()


setting_changed.connect(_forget)


def take() -> int:
    """One ID of the generator "default", from 0 to 2**63 - 1. Migrations refer to it by name."""
    return generator().take()


@deconstructible(path="ringflake.django.Take")
class Take:
    """A default that takes from another entry of `settings.RINGFLAKE`: `default=Take("orders")`."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def __call__(self) -> int:
        return generator(self.alias).take()


class IdTextField(models.Field):
    """An ID that is a text in Python, JSON, forms and URLs, and a BIGINT in the database.

    With a prefix the text of an ID is like `order_3ip9iuvinajdb`, and a text with another one is
    refused. Queries accept the text or the number. An ID of 2**63 or more, from a service that
    uses the full width, is stored as the signed number with the same 64 bits.
    """

    description = "ID as text"
    default_error_messages = {"invalid": "“%(value)s” is not an ID."}

    def __init__(self, prefix: Optional[str] = None, **options: Any) -> None:
        to_text(0, prefix)  # Raises if no ID can have this prefix.
        self.prefix = prefix
        super().__init__(**options)

    def deconstruct(self) -> Any:
        name, path, arguments, options = super().deconstruct()
        if self.prefix is not None:
            options["prefix"] = self.prefix
        return name, path, arguments, options

    def get_internal_type(self) -> str:
        return "BigIntegerField"

    def get_default(self) -> Any:
        return self.to_python(super().get_default())

    def to_python(self, value: Any) -> Optional[str]:
        if value is None:
            return None
        try:
            return to_text(_values.to_number(value, self.prefix), self.prefix)
        except (TypeError, ValueError):
            raise ValidationError(
                self.error_messages["invalid"], code="invalid", params={"value": value}
            ) from None

    def from_db_value(self, value: Optional[int], *_: Any) -> Optional[str]:
        return None if value is None else to_text(_values.from_signed(value), self.prefix)

    def get_prep_value(self, value: Any) -> Optional[int]:
        value = super().get_prep_value(value)
        return None if value is None else _values.to_signed(_values.to_number(value, self.prefix))

    def formfield(self, **options: Any) -> Any:
        return super().formfield(**{"form_class": django.forms.CharField, **options})

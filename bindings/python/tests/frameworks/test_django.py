"""IDs in a Django project with migrations, on SQLite."""

import importlib
import json
import sys

import pytest

django = pytest.importorskip("django")

from django.conf import settings  # noqa: E402
from django.core import serializers  # noqa: E402
from django.core.exceptions import ImproperlyConfigured, ValidationError  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.test import override_settings  # noqa: E402


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The models of an app whose migrations were just made and applied."""
    directory = tmp_path_factory.mktemp("django")
    migrations = directory / "shop_migrations"
    migrations.mkdir()
    (migrations / "__init__.py").touch()
    sys.path.insert(0, str(directory))
    entry = {"data_dir": str(directory), "best_effort": True}
    settings.configure(
        INSTALLED_APPS=["shop"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        MIGRATION_MODULES={"shop": "shop_migrations"},
        USE_TZ=True,
        RINGFLAKE={
            "default": {"local": "shop", **entry},
            "invoices": {"local": "invoices", "width": "js_safe", **entry},
        },
    )
    django.setup()
    call_command("makemigrations", "shop", verbosity=0)
    call_command("migrate", verbosity=0)
    yield importlib.import_module("shop.models")
    sys.path.remove(str(directory))


@pytest.fixture(autouse=True)
def empty(shop):
    yield
    shop.Order.objects.all().delete()
    shop.Customer.objects.all().delete()


def test_migration_names_the_defaults(shop):
    from shop_migrations import __path__ as folder

    written = open(f"{folder[0]}/0001_initial.py").read()
    assert "default=ringflake.django.take" in written
    assert "default=ringflake.django.Take('invoices')" in written
    assert "prefix='customer'" in written
    # A second look at the models finds no change.
    call_command("makemigrations", "shop", check=True, dry_run=True, verbosity=0)


def test_default_takes_an_id_for_each_row(shop):
    orders = shop.Order.objects.bulk_create([shop.Order() for _ in range(2_000)])
    found = set(shop.Order.objects.values_list("id", flat=True))
    assert found == {order.id for order in orders} and len(found) == 2_000
    assert all(0 <= number < 2**63 for number in found) and max(found) >= 2**53
    assert all(order.invoice < 2**53 for order in orders)


def test_text_id_comes_back(shop):
    customer = shop.Customer.objects.create(nickname="Ada")
    assert customer.id.startswith("customer_")
    assert shop.Customer.objects.get(id=customer.id) == customer
    assert shop.Customer.objects.filter(id__in=[customer.id]).count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM shop_customer")
        assert type(cursor.fetchone()[0]) is int
    customer.nickname = "Countess"
    customer.save()
    customer.refresh_from_db()
    assert (shop.Customer.objects.count(), customer.nickname) == (1, "Countess")


def test_foreign_key_holds_the_text(shop):
    customer = shop.Customer.objects.create()
    order = shop.Order.objects.create(customer=customer)
    found = shop.Order.objects.select_related("customer").get(customer_id=customer.id)
    assert (found.id, found.customer_id, found.customer) == (order.id, customer.id, customer)
    assert list(customer.orders.all()) == [order]
    assert shop.Order.objects.get(customer__id=customer.id) == order


@pytest.mark.parametrize("number", [0, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_each_number_comes_back_as_text(shop, number):
    created = shop.Customer.objects.create(friend=number)
    found = shop.Customer.objects.get(friend=number)
    assert found == created
    assert shop.Customer.objects.get(friend=found.friend) == found
    assert int(found.friend.removeprefix("customer_"), 32) == number


def test_json_of_a_model_comes_back(shop):
    customer = shop.Customer.objects.create(friend=2**63)
    written = serializers.serialize("json", [customer])
    assert json.loads(written)[0]["pk"] == customer.id
    customer.delete()
    for found in serializers.deserialize("json", written):
        found.save()
    assert shop.Customer.objects.get().id == json.loads(written)[0]["pk"]


def test_form_accepts_the_text_alone(shop):
    from django.forms import modelform_factory

    form = modelform_factory(shop.Customer, fields=["friend"])
    text = shop.Customer().id
    assert form({"friend": text}).is_valid()
    assert form({"friend": ""}).is_valid()
    assert "is not an ID" in form({"friend": "order_1"}).errors["friend"][0]


@pytest.mark.parametrize("value", [-1, 2**64, 1.5, "1", "order_1", "customer_A", "customer_"])
def test_what_is_no_id_is_refused(shop, value):
    with pytest.raises(ValidationError, match="is not an ID"):
        shop.Customer(friend=value).full_clean()
    with pytest.raises((TypeError, ValueError)):
        shop.Customer.objects.filter(friend=value).exists()


def test_field_without_prefix_has_the_bare_text(shop):
    from ringflake.django import IdTextField

    field = IdTextField()
    assert field.to_python(33) == "11"
    assert field.deconstruct()[3] == {}
    with pytest.raises(ValueError, match="prefix"):
        IdTextField("Customer")
    assert models.BigIntegerField().db_type(connection) == field.db_type(connection)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "no entry 'default'"),
        ({"default": {}}, "needs either `local` or `store`"),
        ({"default": {"local": "a", "store": "sqlite:b"}}, "needs either `local` or `store`"),
        ({"default": {"local": "a", "width": "full"}}, "half of the IDs"),
    ],
)
def test_wrong_settings_say_what_is_wrong(shop, entry, words):
    with override_settings(RINGFLAKE=entry), pytest.raises(ImproperlyConfigured, match=words):
        shop.Order()


def test_changed_settings_open_another_generator(shop):
    from ringflake.django import generator

    before = generator()
    entry = {"local": "other", "width": "js_safe", "best_effort": True}
    with override_settings(RINGFLAKE={"default": entry}):
        assert generator() is not before
        assert shop.Order(invoice=1).id < 2**53

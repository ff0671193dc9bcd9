"""IDs as Pydantic's types."""

import json
from typing import Annotated, Optional

import pytest

pydantic = pytest.importorskip("pydantic")

import ringflake  # noqa: E402
from ringflake.pydantic import Id, IdText  # noqa: E402

LAST = 2**64 - 1


class Order(pydantic.BaseModel):
    id: Id
    customer: Annotated[int, IdText("customer")] = 0
    parent: Optional[Id] = None


def test_json_of_an_id_is_its_text(ids):
    order = Order(id=ids.take(), customer=ids.take())
    written = json.loads(order.model_dump_json())
    assert ringflake.parse(written["id"]) == order.id
    start, _, text = written["customer"].partition("_")
    assert (start, ringflake.parse(text)) == ("customer", order.customer)
    assert Order.model_validate_json(order.model_dump_json()) == order


def test_python_keeps_the_int(ids):
    order = Order(id=ids.take())
    assert order.model_dump() == {"id": order.id, "customer": 0, "parent": None}
    assert order.model_dump(mode="json")["parent"] is None


def test_text_is_that_of_take_text(ids):
    text = ids.take_text("customer")
    assert json.loads(Order(id=1, customer=text).model_dump_json())["customer"] == text


@pytest.mark.parametrize("number", [0, 31, 32, 2**53 + 1, 2**63, LAST])
def test_each_number_comes_back(number):
    order = Order(id=number, customer=number)
    assert Order.model_validate_json(order.model_dump_json()) == order


def test_json_number_is_refused():
    with pytest.raises(pydantic.ValidationError, match="valid string"):
        Order.model_validate_json('{"id": 9007199254740993}')


@pytest.mark.parametrize(
    "value", [-1, LAST + 1, 1.0, True, "", "x", "01", "A", "g000000000000", "order_1"]
)
def test_what_is_no_id_is_refused(value):
    with pytest.raises(pydantic.ValidationError):
        Order(id=value)


def test_another_prefix_is_refused(ids):
    with pytest.raises(pydantic.ValidationError, match="pattern"):
        Order(id=1, customer=ids.take_text("order"))


def test_default_factory_takes(ids):
    class Event(pydantic.BaseModel):
        id: Id = pydantic.Field(default_factory=ids.take)

    assert len({Event().id for _ in range(1_000)}) == 1_000


def test_schema_says_string():
    for mode in ("validation", "serialization"):
        schema = Order.model_json_schema(mode=mode)["properties"]
        assert schema["id"]["type"] == "string"
    assert Order.model_json_schema()["properties"]["customer"]["pattern"].startswith("^customer_")


def test_prefix_that_no_id_has_is_refused():
    with pytest.raises(ValueError, match="prefix"):
        IdText("Customer")

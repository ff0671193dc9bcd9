"""IDs as types of SQLAlchemy's columns, on SQLite."""

import pytest

sqlalchemy = pytest.importorskip("sqlalchemy")

from ringflake.sqlalchemy import Id, IdText  # noqa: E402
from sqlalchemy import ForeignKey, create_engine, select, text  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship  # noqa: E402

LAST = 2**64 - 1


@pytest.fixture
def models(ids):
    class Base(DeclarativeBase):
        pass

    class Customer(Base):
        __tablename__ = "customers"
        id: Mapped[str] = mapped_column(
            IdText("customer"), primary_key=True, default=lambda: ids.take_text("customer")
        )

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[int] = mapped_column(Id, primary_key=True, default=ids.take)
        customer_id: Mapped[str] = mapped_column(ForeignKey(Customer.id), nullable=True)
        customer: Mapped[Customer] = relationship()

    Base.Order, Base.Customer = Order, Customer
    return Base


@pytest.fixture
def session(models):
    engine = create_engine("sqlite://")
    models.metadata.create_all(engine)
    with Session(engine) as session:
        yield session
    engine.dispose()


def test_default_takes_an_id_for_each_row(models, session):
    orders = [models.Order() for _ in range(2_000)]
    session.add_all(orders)
    session.commit()
    session.expunge_all()
    found = session.scalars(select(models.Order.id)).all()
    assert len(set(found)) == 2_000
    # Full width: some are beyond a signed column's range.
    assert any(number >= 2**63 for number in found)


@pytest.mark.parametrize("number", [0, 2**53 + 1, 2**63 - 1, 2**63, LAST])
def test_each_number_comes_back(models, session, number):
    session.add(models.Order(id=number))
    session.commit()
    session.expunge_all()
    assert session.scalars(select(models.Order.id)).one() == number
    assert session.get(models.Order, number).id == number
    stored = session.execute(text("SELECT id FROM orders")).scalar_one()
    assert stored == int.from_bytes(number.to_bytes(8, "big"), "big", signed=True)


def test_text_id_comes_back_and_joins(models, session):
    customer = models.Customer()
    order = models.Order(customer=customer)
    session.add(order)
    session.commit()
    number, name = order.id, customer.id
    assert name.startswith("customer_")
    session.expunge_all()
    found = session.scalars(select(models.Order).where(models.Order.customer_id == name)).one()
    assert (found.id, found.customer.id) == (number, name)
    assert type(session.execute(text("SELECT id FROM customers")).scalar_one()) is int


def test_null_stays_null(models, session):
    session.add(models.Order())
    session.commit()
    assert session.scalars(select(models.Order.customer_id)).one() is None


@pytest.mark.parametrize("value", [-1, LAST + 1, 1.5, True, "A", "", "order_1"])
def test_what_is_no_id_is_refused(models, session, value):
    session.add(models.Order(id=value))
    with pytest.raises(sqlalchemy.exc.StatementError, match="ID|text|prefix|digit|empty"):
        session.commit()


def test_another_prefix_is_refused(models, session, ids):
    with pytest.raises(sqlalchemy.exc.StatementError, match="\"customer\" is expected"):
        session.get(models.Customer, ids.take_text("order"))


def test_column_is_a_bigint(models):
    from sqlalchemy.dialects import postgresql

    assert Id().compile(dialect=postgresql.dialect()) == "BIGINT"
    assert IdText("customer").compile(dialect=postgresql.dialect()) == "BIGINT"


def test_prefix_that_no_id_has_is_refused():
    with pytest.raises(ValueError, match="prefix"):
        IdText("Customer")

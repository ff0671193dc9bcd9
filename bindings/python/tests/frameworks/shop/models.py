from django.db import models
from ringflake.django import IdTextField, Take, take


class Customer(models.Model):
    id = IdTextField("customer", primary_key=True, default=take, editable=False)
    nickname = models.CharField(max_length=20, blank=True)
    friend = IdTextField("customer", null=True, blank=True)


class Order(models.Model):
    id = models.BigIntegerField(primary_key=True, default=take, editable=False)
    invoice = models.BigIntegerField(default=Take("invoices"), unique=True)
    customer = models.ForeignKey(Customer, models.CASCADE, null=True, related_name="orders")

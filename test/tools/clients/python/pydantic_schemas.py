"""Prints the JSON Schemas of Pydantic's types; with texts in TEST_TEXTS, why texts do not parse."""

import collections
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import os
import pathlib
import re
import typing
import uuid

import pydantic
from pydantic import Field, TypeAdapter
from typing_extensions import Annotated, Literal, NamedTuple, NotRequired, TypedDict

Color = enum.Enum("Color", {"RED": "red", "GREEN": "green"})
Level = enum.IntEnum("Level", {"LOW": 1, "HIGH": 2})
T = typing.TypeVar("T")


class Item(pydantic.BaseModel):
    number: int
    name: str = "x"


class Tree(pydantic.BaseModel):
    value: int
    children: list["Tree"] = []


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog", "wolf"] = "dog"
    weight: float


class Page(pydantic.BaseModel, typing.Generic[T]):
    items: list[T]
    after: typing.Optional[str] = None


class Closed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    item: Item


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    number: int


class Aliased(pydantic.BaseModel):
    number: int = Field(alias="theNumber", ge=0)


class Numbers(pydantic.RootModel[list[int]]):
    pass


@dataclasses.dataclass
class Point:
    x: int
    y: typing.Optional[int] = None


class Pair(NamedTuple):
    left: int
    right: str = "z"


class Options(TypedDict):
    verbose: bool
    level: NotRequired[Level]


# Types that check no more than their JSON Schema says.
PLAIN = [
    *(bool, int, float, str, bytes, type(None), list, tuple, set, frozenset, dict, typing.Any),
    *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, uuid.UUID),
    *(pathlib.Path, collections.deque, collections.OrderedDict, re.Pattern, Color, Level),
    *(ipaddress.IPv4Address, ipaddress.IPv4Interface, ipaddress.IPv6Address, ipaddress.IPv6Interface),
    *(pydantic.IPvAnyAddress, pydantic.IPvAnyInterface, pydantic.AnyUrl),
    *(pydantic.SecretStr, pydantic.SecretBytes, pydantic.Json, pydantic.JsonValue, pydantic.ByteSize),
    *(pydantic.StrictBool, pydantic.StrictInt, pydantic.StrictFloat, pydantic.StrictStr, pydantic.FiniteFloat),
    *(pydantic.PositiveInt, pydantic.NonPositiveInt, pydantic.NegativeFloat, pydantic.NonNegativeFloat),
    *(pydantic.AwareDatetime, pydantic.UUID1, pydantic.UUID4, pydantic.UUID5, pydantic.Base64Bytes),
    *(Item, Tree, Page[int], Page[Item], Closed, Open, Aliased, Numbers, Point, Pair, Options),
    *(list[int], tuple[int, str], tuple[int, ...], set[int], frozenset[str], collections.deque[int]),
    *(dict[str, int], dict[uuid.UUID, int], dict[Color, int], dict[Literal["a", "b"], int], typing.Mapping[str, float]),
    *(typing.Optional[int], typing.Union[int, str, None], list[typing.Union[int, list[str]]], typing.Sequence[Item]),
    *(Literal["a", 1, True, None], typing.DefaultDict[str, int], typing.Counter[str]),
    *(pydantic.Json[list[int]], pydantic.Json[Item], pydantic.Secret[int], typing.Pattern[str]),
    *(pydantic.conint(gt=1, lt=10, multiple_of=3), pydantic.confloat(ge=0, le=1, multiple_of=0.25)),
    *(pydantic.constr(min_length=1, max_length=10, pattern="^[a-z]+$"), pydantic.conlist(int, min_length=1, max_length=3)),
    pydantic.conset(int, min_length=1, max_length=3),
    Annotated[dict[str, int], Field(min_length=2, max_length=5)],
    Annotated[set[Color], Field(min_length=1)],
    Annotated[typing.Union[Cat, Dog], Field(discriminator="kind")],
    list[Annotated[typing.Union[Cat, Dog], Field(discriminator="kind")]],
    Annotated[str, pydantic.WithJsonSchema({"type": "string", "format": "phone"})],
]
# Types that check more, such as the scheme of a URL or whether a file exists.
LOOSE = [
    *(decimal.Decimal, complex, ipaddress.IPv4Network, ipaddress.IPv6Network, pydantic.IPvAnyNetwork, Literal[Color.RED]),
    *(pydantic.AnyHttpUrl, pydantic.HttpUrl, pydantic.FileUrl, pydantic.FtpUrl, pydantic.AnyWebsocketUrl),
    *(pydantic.PostgresDsn, pydantic.RedisDsn, pydantic.MongoDsn, pydantic.KafkaDsn, pydantic.AmqpDsn, pydantic.MySQLDsn),
    *(pydantic.FilePath, pydantic.NewPath, pydantic.PastDate, pydantic.FutureDatetime, pydantic.NaiveDatetime),
    *(pydantic.ImportString, pydantic.Base64Str, pydantic.Base64UrlStr),
    *(pydantic.condecimal(gt=0, max_digits=6, decimal_places=2), pydantic.conbytes(min_length=1, max_length=8)),
    Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(max_length=100, allowed_schemes=["https"])],
]
ADAPTERS = [TypeAdapter(one) for one in PLAIN + LOOSE]


def refusal(index, text):
    try:
        ADAPTERS[index].validate_json(text)
    except pydantic.ValidationError as error:
        return f"{PLAIN[index]}: {text}: {error}"
    return None


texts = os.environ.get("TEST_TEXTS")
if texts is None:
    modes = ("validation", "serialization")
    print(json.dumps({"plain": len(PLAIN), "schemas": [[one.json_schema(mode=mode) for mode in modes] for one in ADAPTERS]}))
else:
    reasons = [refusal(index, text) for index, text in enumerate(json.loads(texts)) if text is not None]
    print(json.dumps([reason for reason in reasons if reason is not None]))

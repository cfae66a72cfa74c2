"""A small one-on-one race with overtaking and collisions, in the place of the paper's Gran Turismo matrices.

Those matrices are not public, so this simulation makes some of the same kind: checkpoints of a training run, most of
them strong, and three built-in drivers who avoid every collision, all racing each other (paper, appendix "Experimental
Details"). Lengths are in metres and times in seconds, and all races of a table are driven at once.

The track
    A lap of straights and corners with two lanes. A corner has a speed limit, and cars must brake before it.
The cars
    Both start from a standstill, side by side, each in its own lane. A car accelerates against drag, less of it in the
    slipstream of a car before it in its lane, and brakes in time for its own limit, which is the track's times its
    driver's `pace`. A car never drives into a car before it in its lane: it stays behind.
The moods
    Every ten seconds each driver's form and nerve are drawn anew. Form makes the pace vary, by the driver's `wobble`.
    Nerve decides whether the driver insists or yields, with probabilities of its own: `attack` while behind, `defence`
    otherwise. Near the other car, an insisting driver leaves the ideal line and takes corners more slowly.
On a straight
    A driver whom a near car holds up pulls out to the other lane: an insisting one at once, a yielding one only if
    clearly faster. A leader who insists closes the door, which keeps a yielding follower behind. If both insist and
    come close, they collide. A follower who does not attack drives in single file, where the slipstream is.
In a corner
    There is one ideal line. Of two cars side by side, the yielding one lifts; if both insist, they collide.
A collision
    Both cars lose much of their speed, the one ahead more, and both drivers yield until their next mood.
The end
    After a hundred seconds, whoever is ahead has won.

So a defender holds a somewhat faster driver who yields, an attacker breaks through a defender, and a driver who yields
beats an attacker of the same pace: results need not be transitive. A driver who always yields never collides.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd

BoolArray = NDArray[np.bool_]

# Time, in seconds and steps.
STEP, STEPS_PER_MOOD, MOODS = 0.25, 40, 10

# The cars.
LENGTH = 5.0
ENGINE, BRAKES = 8.0, 10.0  # acceleration from standstill, and the deceleration that drivers plan with
TOP_SPEED = 75.0  # where drag takes all of the engine's power
SLIPSTREAM, SHELTER = 40.0, 0.25  # how far a slipstream reaches, and the share of drag that it takes away at most
HEADWAY = 1.0  # what a follower leaves between itself and the car before it

# The drivers.
NEAR = 15.0  # the gap within which the other car matters
CAUTION = 3.0  # how much faster a yielding driver must be to pull out
TIGHT_LINE, LIFTING = 0.95, 0.85  # shares of the limit: off the ideal line, and giving way in a corner
TOUCH = 3.0  # the gap at which a door that is being closed hits the one who goes for it
KEPT_AHEAD, KEPT_BEHIND = 0.6, 0.75  # shares of the speed after a collision

# The track: lengths and limits of a lap's sections, then what holds at each metre of as many laps as a race can take.
LAP = ((400, np.inf), (120, 28.0), (250, np.inf), (80, 22.0), (600, np.inf), (150, 35.0), (300, np.inf), (100, 25.0))
LAPS = 2 + int(TOP_SPEED * STEP * STEPS_PER_MOOD * MOODS) // sum(length for length, _ in LAP)
LIMIT = np.concatenate([np.full(length, limit) for length, limit in LAPS * LAP])
IS_CORNER = np.isfinite(LIMIT)


def highest_speeds() -> FloatArray:
    """The speed at each metre from which the brakes can still meet every limit ahead."""
    braking = 2.0 * BRAKES * np.arange(len(LIMIT))
    squares: FloatArray = np.minimum.accumulate((LIMIT**2 + braking)[::-1])[::-1] - braking
    return np.sqrt(squares)


HIGHEST_SPEED = highest_speeds()


class Drivers(NamedTuple):
    """Drivers, one for each entry of the arrays."""

    pace: FloatArray  # share of the limits at which they go, above 0 and at most 1
    wobble: FloatArray  # standard deviation of the pace from mood to mood, relative to it, from 0 to 0.2
    attack: FloatArray  # probability of insisting while behind
    defence: FloatArray  # probability of insisting while ahead or level


class Luck(NamedTuple):
    """All that chance decides, in arrays of moods × 2 × races, with the left starter's row first."""

    form: FloatArray  # how many standard deviations each driver is faster than usual, from -3 to 3
    nerve: FloatArray  # a driver insists if this is below the probability of doing so


class Cars(NamedTuple):
    """Both cars of every race at one moment, in arrays of 2 × races, with the left starter's row first."""

    position: FloatArray  # of the nose, from the start
    speed: FloatArray
    lane: BoolArray  # whether in the right lane
    shaken: BoolArray  # whether the two have collided in this mood, one entry per race
    collided: BoolArray  # whether the two have collided at all, one entry per race

    def left_points(self) -> FloatArray:
        """What the left starters get if the races end now: 1 if ahead, 0 if behind, 0.5 if level."""
        left, right = self.position
        return np.where(left > right, 1.0, np.where(left < right, 0.0, 0.5))


BUILT_IN = Drivers(
    pace=np.array([0.91, 0.925, 0.94]), wobble=np.full(3, 0.005), attack=np.zeros(3), defence=np.zeros(3)
)


def trained_drivers(n: int, rng: np.random.Generator) -> Drivers:
    """Checkpoints of a training run: pace grows fast, then slowly; most of them mostly yield, some mostly insist."""
    progress = 1.0 - np.exp(-4.0 * np.linspace(0.0, 1.0, n))
    pace = 0.89 + 0.05 * progress + rng.normal(0.0, 0.007, n)
    return Drivers(pace, rng.uniform(0.005, 0.02, n), rng.beta(0.4, 1.0, n), rng.beta(0.4, 1.0, n))


def draw_luck(races: int, rng: np.random.Generator) -> Luck:
    """Luck for as many races: form is normal, cut at three standard deviations, and nerve is uniform."""
    shape = (MOODS, 2, races)
    return Luck(rng.standard_normal(shape).clip(-3.0, 3.0), rng.random(shape))


def passing_race(
    rng: np.random.Generator, *, n: int = 43, races: int = 20, collision_penalty: bool = False
) -> "pd.DataFrame":
    """Results of three built-in and `n` trained drivers: each two of them race `races` times, half from each side.

    Parameters
    ----------
    rng
        Draws the trained drivers and the luck. Equal states give the same races, with or without `collision_penalty`.
    n
        Number of trained drivers, in the order of training.
    races
        Number of races of each pair, even.
    collision_penalty
        A race with a collision counts -1 for both. The built-in drivers, who never collide, are left out.

    Returns
    -------
    DataFrame of shape (n + 3, n + 3), or (n, n) with `collision_penalty`
        The column driver's mean result against the row driver: 1 for a win, 0 for a loss; 0.5 on the diagonal.
    """
    import pandas as pd

    if n < 1:
        raise ProblemError(f"`n` must be at least 1, got {n}.")
    if races < 2 or races % 2:
        raise ProblemError(f"`races` must be even and at least 2, for sides are swapped; got {races}.")
    drivers = Drivers(*map(np.concatenate, zip(BUILT_IN, trained_drivers(n, rng), strict=True)))
    names = [f"built-in-{i}" for i in range(3)] + [f"driver-{i:0{max(2, len(str(n - 1)))}d}" for i in range(n)]
    first, second = np.triu_indices(len(names), 1)
    on_the_left = np.stack([first, second]).repeat(races // 2, axis=0).ravel()
    on_the_right = np.stack([second, first]).repeat(races // 2, axis=0).ravel()
    left, right = (Drivers(*(trait[side] for trait in drivers)) for side in (on_the_left, on_the_right))
    end = race(left, right, draw_luck(len(on_the_left), rng))
    first_points = np.where(on_the_left < on_the_right, end.left_points(), 1.0 - end.left_points())
    penalised = end.collided & collision_penalty
    results = np.full((len(names), len(names)), 0.5)
    for policy, opponent, points in ((first, second, first_points), (second, first, 1.0 - first_points)):
        results[opponent, policy] = np.where(penalised, -1.0, points).reshape(races, -1).mean(axis=0)
    table = pd.DataFrame(results, index=names, columns=names)
    return table.iloc[3:, 3:] if collision_penalty else table


def race(left: Drivers, right: Drivers, luck: Luck) -> Cars:
    """The cars at the end of the races of each left starter against the right starter at the same place."""
    *_, end = drive(left, right, luck)
    return end


def drive(left: Drivers, right: Drivers, luck: Luck) -> Iterator[Cars]:
    """The cars at the start of the races, and after each step until the end."""
    check(left, right, luck)
    drivers = Drivers(*map(np.stack, zip(left, right, strict=True)))
    standstill, nobody = np.zeros(drivers.pace.shape), np.zeros(len(left.pace), dtype=np.bool_)
    cars = Cars(standstill, standstill, np.stack([nobody, ~nobody]), shaken=nobody, collided=nobody)
    yield cars
    for form, nerve in zip(*luck, strict=True):
        pace = drivers.pace * (1.0 + drivers.wobble * form)
        cars = cars._replace(shaken=nobody)
        for _ in range(STEPS_PER_MOOD):
            behind = cars.position < cars.position[::-1]
            insists = (nerve < np.where(behind, drivers.attack, drivers.defence)) & ~cars.shaken
            cars = step(cars, pace, insists)
            yield cars


def check(left: Drivers, right: Drivers, luck: Luck) -> None:
    """Refuses drivers and luck that do not make races."""
    races = left.pace.size
    if any(trait.shape != (races,) for trait in (*left, *right)) or any(
        part.shape != (MOODS, 2, races) for part in luck
    ):
        raise ProblemError(f"Every trait of {races} drivers must have shape ({races},), luck ({MOODS}, 2, {races}).")
    for drivers in (left, right):
        for name, trait, highest in zip(Drivers._fields, drivers, (1.0, 0.2, 1.0, 1.0), strict=True):
            lowest = np.nextafter(0.0, 1.0) if name == "pace" else 0.0
            if not np.all((lowest <= trait) & (trait <= highest)):
                raise ProblemError(f"`{name}` must be between 0 and {highest:g}, and a pace not 0; got {trait}.")


def step(cars: Cars, pace: FloatArray, insists: BoolArray) -> Cars:
    """The cars one step later. In every array, `[::-1]` gives each car what belongs to the other one."""
    lead = cars.position[::-1] - cars.position  # of the other car
    gap = lead - LENGTH
    follows, near, side_by_side = gap >= 0.0, np.abs(lead) < LENGTH + NEAR, np.abs(lead) < LENGTH
    single_file = cars.lane[0] == cars.lane[1]
    corner = IS_CORNER[cars.position.astype(np.intp)]

    shelter = SHELTER * (follows & single_file) * (1.0 - gap / SLIPSTREAM).clip(0.0)
    line = np.where(side_by_side & corner & ~insists, LIFTING, np.where(near & insists, TIGHT_LINE, 1.0))
    speed = free_speed(cars, pace, shelter, line)

    enough = np.where(single_file & ~insists, CAUTION, 0.0)
    held_up = follows & near & ~corner & (speed - speed[::-1] > enough)
    attacks = held_up & (insists | ~insists[::-1])
    lane = next_lane(cars.lane, attacks, follows & (gap < SLIPSTREAM) & ~attacks, insists[::-1] & ~corner)

    contested = (side_by_side & corner) | (attacks & (gap < TOUCH))
    collide = contested.any(axis=0) & insists.all(axis=0)
    speed = np.where(collide, speed * np.where(lead > 0.0, KEPT_BEHIND, KEPT_AHEAD), speed)
    room = (gap - HEADWAY).clip(0.0) / STEP + speed[::-1]
    speed = np.where(follows & (lane[0] == lane[1]), np.minimum(speed, room), speed)
    return Cars(cars.position + STEP * speed, speed, lane, cars.shaken | collide, cars.collided | collide)


def free_speed(cars: Cars, pace: FloatArray, shelter: FloatArray, line: FloatArray) -> FloatArray:
    """How fast each car goes next if no car is in its way."""
    drag = (1.0 - shelter) * (cars.speed / (TOP_SPEED * pace)) ** 2
    accelerated = cars.speed + STEP * ENGINE * (1.0 - drag)
    next_place = (cars.position + STEP * cars.speed).astype(np.intp)
    return np.minimum(accelerated, line * pace * HIGHEST_SPEED[next_place])


def next_lane(lane: BoolArray, attacks: BoolArray, lines_up: BoolArray, door_closes: BoolArray) -> BoolArray:
    """The lanes once attackers have pulled out, and others are in single file because they or their leaders moved."""
    single_file = lane[0] == lane[1]
    pulls_out, comes_together = attacks & single_file, lines_up & ~single_file
    moved: BoolArray = lane ^ pulls_out ^ (comes_together & ~door_closes) ^ (comes_together & door_closes)[::-1]
    return moved

import itertools
import math
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rposst_opt as ro
from rposst_opt.experiments.domains import passing
from rposst_opt.experiments.domains.passing import Cars, Drivers, Luck, draw_luck, drive, passing_race, race, step

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

# The lap begins with a straight of 400 metres, and a corner of 120 metres follows with a limit of 28 metres per second.
ON_THE_STRAIGHT, IN_THE_CORNER = 100.0, 450.0


def driver(pace: float, attack: float = 0.0, defence: float = 0.0, wobble: float = 0.0, races: int = 1) -> Drivers:
    return Drivers(*(np.full(races, value) for value in (pace, wobble, attack, defence)))


def no_luck(races: int = 1) -> Luck:
    """Nobody is in good or bad form; a driver insists exactly if the probability of doing so is above a half."""
    shape = (passing.MOODS, 2, races)
    return Luck(np.zeros(shape), np.full(shape, 0.5))


def mirrored(luck: Luck) -> Luck:
    return Luck(luck.form[:, ::-1], luck.nerve[:, ::-1])


def one_race(
    positions: tuple[float, float], speeds: tuple[float, float], lanes: tuple[int, int], shaken: bool = False
) -> Cars:
    return Cars(
        np.array(positions)[:, None],
        np.array(speeds)[:, None],
        np.array(lanes, dtype=np.bool_)[:, None],
        shaken=np.array([shaken]),
        collided=np.array([shaken]),
    )


def one_step(cars: Cars, insists: tuple[int, int] = (0, 0), pace: tuple[float, float] = (1.0, 1.0)) -> Cars:
    return step(cars, np.array(pace)[:, None], np.array(insists, dtype=np.bool_)[:, None])


def speeds(cars: Cars) -> list[float]:
    return [float(speed) for speed in cars.speed[:, 0]]


def lanes(cars: Cars) -> list[int]:
    return [int(lane) for lane in cars.lane[:, 0]]


def accelerated(speed: float, drag: float = 1.0) -> float:
    return speed + 0.25 * 8.0 * (1.0 - drag * (speed / 75.0) ** 2)


@st.composite
def some_drivers(draw: st.DrawFn, races: int) -> Drivers:
    def values(low: float, high: float) -> FloatArray:
        return np.array(draw(st.lists(st.floats(low, high), min_size=races, max_size=races)))

    return Drivers(values(0.85, 1.0), values(0.0, 0.05), values(0.0, 1.0), values(0.0, 1.0))


@st.composite
def some_races(draw: st.DrawFn, races: int = 6) -> tuple[Drivers, Drivers, Luck]:
    luck = draw_luck(races, np.random.default_rng(draw(st.integers(0, 2**32))))
    return draw(some_drivers(races)), draw(some_drivers(races)), luck


class TestTrack:
    def test_the_highest_speed_is_the_limit_or_what_the_brakes_can_take_off_until_the_next_metre(self) -> None:
        for here, ahead, limit in zip(
            passing.HIGHEST_SPEED[:-1], passing.HIGHEST_SPEED[1:], passing.LIMIT[:-1], strict=True
        ):
            assert here == pytest.approx(min(limit, math.sqrt(ahead**2 + 2 * passing.BRAKES)))

    def test_the_track_is_longer_than_any_race(self) -> None:
        fastest = passing.TOP_SPEED / math.sqrt(1.0 - passing.SHELTER)
        assert fastest * passing.STEP * passing.STEPS_PER_MOOD * passing.MOODS < len(passing.LIMIT)


class TestStep:
    def test_a_car_accelerates_against_drag(self) -> None:
        start = one_race((0.0, 0.0), (0.0, 0.0), (0, 1))
        after_one = one_step(start)
        assert speeds(after_one) == [2.0, 2.0]
        assert after_one.position[:, 0].tolist() == [0.5, 0.5]
        assert speeds(one_step(after_one)) == pytest.approx([accelerated(2.0)] * 2)

    def test_a_car_brakes_for_the_corner_at_its_own_pace(self) -> None:
        cars = one_step(one_race((395.0, 300.0), (40.0, 0.0), (0, 1)), pace=(0.9, 1.0))
        assert speeds(cars) == pytest.approx([0.9 * 28.0, 2.0])

    def test_the_slipstream_is_in_the_lane_of_the_car_ahead(self) -> None:
        # The gap is 20 metres, half of what a slipstream reaches, so it takes half of what it can take.
        sheltered = one_step(one_race((100.0, 125.0), (40.0, 40.0), (0, 0)))
        assert speeds(sheltered) == pytest.approx([accelerated(40.0, drag=1.0 - 0.25 / 2), accelerated(40.0)])
        outside = one_step(one_race((100.0, 125.0), (40.0, 40.0), (0, 1)))
        assert speeds(outside) == pytest.approx([accelerated(40.0)] * 2)
        too_far = one_step(one_race((100.0, 145.0), (40.0, 40.0), (0, 0)))
        assert speeds(too_far) == pytest.approx([accelerated(40.0)] * 2)

    def test_a_held_up_driver_who_yields_pulls_out_only_if_clearly_faster(self) -> None:
        place = (ON_THE_STRAIGHT, ON_THE_STRAIGHT + 15.0)
        assert lanes(one_step(one_race(place, (42.0, 40.0), (0, 0)))) == [0, 0]
        assert lanes(one_step(one_race(place, (44.0, 40.0), (0, 0)))) == [1, 0]

    def test_a_held_up_driver_who_insists_pulls_out_if_faster_at_all(self) -> None:
        place = (ON_THE_STRAIGHT, ON_THE_STRAIGHT + 15.0)
        assert lanes(one_step(one_race(place, (42.0, 40.0), (0, 0)), insists=(1, 0))) == [1, 0]
        assert lanes(one_step(one_race(place, (38.0, 40.0), (0, 0)), insists=(1, 0))) == [0, 0]

    def test_nobody_pulls_out_from_afar_or_in_a_corner(self) -> None:
        far = one_race((ON_THE_STRAIGHT, ON_THE_STRAIGHT + 25.0), (44.0, 40.0), (0, 0))
        assert lanes(one_step(far, insists=(1, 0))) == [0, 0]
        corner = one_race((IN_THE_CORNER, IN_THE_CORNER + 15.0), (27.0, 20.0), (0, 0))
        assert lanes(one_step(corner, insists=(1, 0))) == [0, 0]

    def test_a_leader_who_insists_closes_the_door_on_a_follower_who_yields(self) -> None:
        place = (ON_THE_STRAIGHT, ON_THE_STRAIGHT + 15.0)
        assert lanes(one_step(one_race(place, (44.0, 40.0), (0, 0)), insists=(0, 1))) == [0, 0]
        assert lanes(one_step(one_race(place, (44.0, 40.0), (1, 0)), insists=(0, 1))) == [1, 1]

    def test_a_follower_who_does_not_attack_lines_up_behind_a_leader_who_yields(self) -> None:
        place = (ON_THE_STRAIGHT, ON_THE_STRAIGHT + 15.0)
        assert lanes(one_step(one_race(place, (38.0, 40.0), (1, 0)))) == [0, 0]

    def test_a_follower_out_of_the_slipstream_stays_in_its_lane(self) -> None:
        far = one_race((ON_THE_STRAIGHT, ON_THE_STRAIGHT + 50.0), (38.0, 40.0), (1, 0))
        assert lanes(one_step(far)) == lanes(one_step(far, insists=(0, 1))) == [1, 0]

    def test_in_a_corner_no_leader_leaves_its_lane(self) -> None:
        corner = one_race((IN_THE_CORNER, IN_THE_CORNER + 15.0), (20.0, 20.0), (1, 0))
        assert lanes(one_step(corner, insists=(0, 1))) == [0, 0]

    def test_a_follower_once_out_stays_out_while_faster(self) -> None:
        place = (ON_THE_STRAIGHT, ON_THE_STRAIGHT + 15.0)
        assert lanes(one_step(one_race(place, (41.0, 40.0), (1, 0)))) == [1, 0]

    def test_a_follower_in_single_file_keeps_its_distance(self) -> None:
        cars = one_step(one_race((IN_THE_CORNER, IN_THE_CORNER + 7.0), (28.0, 10.0), (0, 0)))
        assert cars.position[1, 0] - cars.position[0, 0] == pytest.approx(5.0 + 1.0)
        too_close = one_step(one_race((IN_THE_CORNER, IN_THE_CORNER + 5.5), (28.0, 10.0), (0, 0)))
        assert too_close.position[1, 0] - too_close.position[0, 0] == pytest.approx(5.5)

    def test_a_follower_before_whom_the_door_is_closed_brakes_at_once(self) -> None:
        cars = one_step(one_race((ON_THE_STRAIGHT, ON_THE_STRAIGHT + 6.2), (46.0, 40.0), (1, 0)), insists=(0, 1))
        assert lanes(cars) == [1, 1]
        assert cars.position[1, 0] - cars.position[0, 0] == pytest.approx(5.0 + 1.0)

    def test_a_follower_who_pulls_out_need_not_brake(self) -> None:
        cars = one_step(one_race((ON_THE_STRAIGHT, ON_THE_STRAIGHT + 6.2), (46.0, 40.0), (0, 0)))
        assert lanes(cars) == [1, 0]
        assert speeds(cars)[0] > 46.0

    def test_only_near_the_other_car_an_insisting_driver_leaves_the_ideal_line(self) -> None:
        near = one_race((IN_THE_CORNER, IN_THE_CORNER + 15.0), (28.0, 28.0), (0, 1))
        assert speeds(one_step(near, insists=(1, 1))) == pytest.approx([0.95 * 28.0] * 2)
        far = one_race((IN_THE_CORNER, IN_THE_CORNER + 25.0), (28.0, 28.0), (0, 1))
        assert speeds(one_step(far, insists=(1, 1))) == pytest.approx([28.0] * 2)

    def test_of_two_side_by_side_in_a_corner_the_yielding_one_lifts(self) -> None:
        cars = one_step(one_race((IN_THE_CORNER, IN_THE_CORNER + 2.0), (28.0, 28.0), (0, 1)), insists=(1, 0))
        assert speeds(cars) == pytest.approx([0.95 * 28.0, 0.85 * 28.0])
        assert not cars.collided[0]

    def test_two_who_yield_side_by_side_in_a_corner_both_lift(self) -> None:
        cars = one_step(one_race((IN_THE_CORNER, IN_THE_CORNER + 2.0), (28.0, 28.0), (0, 1)))
        assert speeds(cars) == pytest.approx([0.85 * 28.0] * 2)
        assert not cars.collided[0]

    def test_two_who_insist_side_by_side_in_a_corner_collide_and_the_one_ahead_loses_more(self) -> None:
        cars = one_step(one_race((IN_THE_CORNER, IN_THE_CORNER + 2.0), (28.0, 28.0), (0, 1)), insists=(1, 1))
        assert cars.collided[0]
        assert cars.shaken[0]
        assert speeds(cars) == pytest.approx([0.75 * 0.95 * 28.0, 0.6 * 0.95 * 28.0])

    def test_level_cars_lose_the_same_in_a_collision(self) -> None:
        cars = one_step(one_race((IN_THE_CORNER, IN_THE_CORNER), (28.0, 28.0), (0, 1)), insists=(1, 1))
        assert cars.collided[0]
        assert speeds(cars) == pytest.approx([0.6 * 0.95 * 28.0] * 2)

    def test_two_who_insist_side_by_side_on_a_straight_do_not_touch(self) -> None:
        cars = one_step(one_race((ON_THE_STRAIGHT, ON_THE_STRAIGHT + 2.0), (40.0, 40.0), (0, 1)), insists=(1, 1))
        assert not cars.collided[0]

    def test_a_door_that_closes_on_one_who_insists_is_hit_only_from_close_by(self) -> None:
        close = one_race((ON_THE_STRAIGHT, ON_THE_STRAIGHT + 7.0), (42.0, 40.0), (0, 0))
        assert one_step(close, insists=(1, 1)).collided[0]
        assert not one_step(close, insists=(1, 0)).collided[0]
        assert not one_step(close, insists=(0, 1)).collided[0]
        apart = one_race((ON_THE_STRAIGHT, ON_THE_STRAIGHT + 9.0), (42.0, 40.0), (0, 0))
        assert not one_step(apart, insists=(1, 1)).collided[0]

    def test_a_collision_is_not_forgotten(self) -> None:
        assert one_step(one_race((0.0, 0.0), (0.0, 0.0), (0, 1), shaken=True)).collided[0]


class TestRace:
    def test_equal_drivers_are_level_at_the_end(self) -> None:
        end = race(driver(0.93), driver(0.93), no_luck())
        assert end.position[0, 0] == end.position[1, 0] > 3000.0
        assert end.left_points().tolist() == [0.5]

    @pytest.mark.parametrize("pace", [0.931, 0.94, 1.0])
    def test_the_faster_of_two_who_yield_wins(self, pace: float) -> None:
        assert race(driver(pace), driver(0.93), no_luck()).left_points().tolist() == [1.0]
        assert race(driver(0.93), driver(pace), no_luck()).left_points().tolist() == [0.0]

    @pytest.mark.parametrize("attack", [0.0, 1.0])
    def test_a_defender_holds_a_slightly_faster_driver_who_yields(self, attack: float) -> None:
        moments = list(drive(driver(0.93, attack, defence=1.0), driver(0.935), no_luck()))
        assert moments[-1].left_points().tolist() == [1.0]
        assert not moments[-1].collided[0]
        held = [cars for cars in moments if cars.position[0, 0] - cars.position[1, 0] == pytest.approx(6.0)]
        assert len(held) > 50  # the faster one sits right behind

    def test_without_defence_the_slightly_faster_driver_wins(self) -> None:
        assert race(driver(0.93), driver(0.935), no_luck()).left_points().tolist() == [0.0]

    def test_nobody_holds_a_much_faster_driver(self) -> None:
        assert race(driver(0.9, attack=1.0, defence=1.0), driver(0.99), no_luck()).left_points().tolist() == [0.0]

    def test_an_attacker_breaks_through_the_defence_of_a_slightly_faster_driver(self) -> None:
        attacked = race(driver(0.93, attack=1.0), driver(0.935, defence=1.0), no_luck())
        assert attacked.left_points().tolist() == [1.0]
        assert attacked.collided.tolist() == [True]
        unattacked = race(driver(0.93), driver(0.935, defence=1.0), no_luck())
        assert unattacked.left_points().tolist() == [0.0]
        assert unattacked.collided.tolist() == [False]

    def test_two_who_always_insist_collide(self) -> None:
        end = race(driver(0.93, 1.0, 1.0), driver(0.93, 1.0, 1.0), no_luck())
        assert end.collided.tolist() == [True]
        assert end.left_points().tolist() == [0.5]
        assert race(driver(0.935, 1.0, 1.0), driver(0.93, 1.0, 1.0), no_luck()).collided.tolist() == [True]

    def test_a_collision_costs_both_time(self) -> None:
        insisting = race(driver(0.93, 1.0, 1.0), driver(0.93, 1.0, 1.0), no_luck())
        yielding = race(driver(0.93), driver(0.93), no_luck())
        assert np.all(insisting.position < yielding.position - 100.0)

    def test_no_two_collide_twice_in_one_mood(self) -> None:
        moments = list(drive(driver(0.93, 1.0, 1.0), driver(0.93, 1.0, 1.0), no_luck()))
        collisions = 0
        for mood in range(passing.MOODS):
            begin = 1 + mood * passing.STEPS_PER_MOOD
            in_this_mood = moments[begin : begin + passing.STEPS_PER_MOOD]
            shaken = [bool(cars.shaken[0]) for cars in in_this_mood]
            assert shaken == sorted(shaken)
            speeds_since = [speeds(cars)[0] for cars in in_this_mood if cars.shaken[0]]
            if len(speeds_since) > 1:
                assert speeds_since[1] > speeds_since[0]
                collisions += 1
        assert collisions > 1

    def test_nerve_decides_who_insists(self) -> None:
        halfway = driver(0.93, attack=0.5, defence=0.5)
        for nerve, collided in ((0.49, True), (0.5, False)):
            luck = no_luck()._replace(nerve=np.full((passing.MOODS, 2, 1), nerve))
            assert race(halfway, halfway, luck).collided.tolist() == [collided]

    def test_form_decides_as_far_as_the_driver_wobbles(self) -> None:
        luck = no_luck(2)
        luck.form[:, 0] = 1.0
        left = driver(0.93, wobble=0.01, races=2)._replace(wobble=np.array([0.01, 0.0]))
        assert race(left, driver(0.935, races=2), luck).left_points().tolist() == [1.0, 0.0]

    def test_at_the_same_pace_defender_beats_clean_beats_attacker_beats_defender(self) -> None:
        races = 400
        clean = driver(0.93, wobble=0.01, races=races)
        defender = driver(0.93, defence=1.0, wobble=0.01, races=races)
        attacker = driver(0.93, attack=1.0, wobble=0.01, races=races)
        for better, worse in ((defender, clean), (clean, attacker), (attacker, defender)):
            assert race(better, worse, draw_luck(races, np.random.default_rng(3))).left_points().mean() > 0.55

    @settings(max_examples=10)
    @given(some_races())
    def test_cars_start_side_by_side_and_never_roll_back_jump_or_overlap(
        self, races: tuple[Drivers, Drivers, Luck]
    ) -> None:
        moments = list(drive(*races))
        assert len(moments) == 1 + passing.MOODS * passing.STEPS_PER_MOOD
        assert not moments[0].position.any()
        assert moments[0].lane.tolist() == [[False] * 6, [True] * 6]
        for before, after in itertools.pairwise(moments):
            assert np.all((after.speed >= 0.0) & (after.speed < 80.0))
            assert np.all(after.speed - before.speed <= passing.ENGINE * passing.STEP)
            np.testing.assert_array_equal(after.position, before.position + passing.STEP * after.speed)
            apart = np.abs(after.position[0] - after.position[1])
            assert not np.any((after.lane[0] == after.lane[1]) & (apart < passing.LENGTH))
            changed_over = (before.position[0] > before.position[1]) != (after.position[0] > after.position[1])
            assert not np.any(changed_over & (after.lane[0] == after.lane[1]))
            was_apart = np.abs(before.position[0] - before.position[1])
            assert not np.any((after.lane != before.lane) & (was_apart < passing.LENGTH))
            assert np.all(after.collided >= before.collided)

    @settings(max_examples=10)
    @given(some_races())
    def test_changing_sides_changes_nothing_else(self, races: tuple[Drivers, Drivers, Luck]) -> None:
        left, right, luck = races
        end, other = race(left, right, luck), race(right, left, mirrored(luck))
        np.testing.assert_array_equal(other.position, end.position[::-1])
        np.testing.assert_array_equal(other.speed, end.speed[::-1])
        np.testing.assert_array_equal(other.lane, ~end.lane[::-1])
        np.testing.assert_array_equal(other.collided, end.collided)
        np.testing.assert_array_equal(other.left_points(), 1.0 - end.left_points())

    @settings(max_examples=10)
    @given(some_races())
    def test_a_driver_who_always_yields_never_collides(self, races: tuple[Drivers, Drivers, Luck]) -> None:
        left, right, luck = races
        yielding = right._replace(attack=np.zeros(6), defence=np.zeros(6))
        assert not race(left, yielding, luck).collided.any()

    @settings(max_examples=10)
    @given(some_races())
    def test_each_race_is_driven_as_if_it_were_the_only_one(self, races: tuple[Drivers, Drivers, Luck]) -> None:
        left, right, luck = races
        alone = race(
            Drivers(*(trait[2:3] for trait in left)),
            Drivers(*(trait[2:3] for trait in right)),
            Luck(*(part[:, :, 2:3] for part in luck)),
        )
        end = race(left, right, luck)
        np.testing.assert_array_equal(alone.position, end.position[:, 2:3])
        assert alone.collided[0] == end.collided[2]

    @pytest.mark.parametrize(
        ("name", "value"),
        [("pace", 0.0), ("pace", 1.1), ("wobble", 0.3), ("wobble", -0.1), ("attack", 1.1), ("defence", math.nan)],
    )
    def test_impossible_drivers_are_refused(self, name: str, value: float) -> None:
        impossible = driver(0.9)._replace(**{name: np.array([value])})
        for left, right in ((driver(0.9), impossible), (impossible, driver(0.9))):
            with pytest.raises(ro.ProblemError, match=f"`{name}` must be between 0 and"):
                race(left, right, no_luck())

    def test_drivers_and_luck_for_other_races_are_refused(self) -> None:
        for left, right, luck in (
            (driver(0.9), driver(0.9, races=2), no_luck()),
            (driver(0.9, races=2), driver(0.9), no_luck(2)),
            (driver(0.9), driver(0.9), no_luck(2)),
            (driver(0.9), driver(0.9)._replace(attack=np.zeros(2)), no_luck()),
            (driver(0.9), driver(0.9), no_luck()._replace(form=np.zeros((1, 2, 1)))),
        ):
            with pytest.raises(ro.ProblemError, match="must have shape"):
                race(left, right, luck)


class TestPassingRace:
    @settings(max_examples=10)
    @given(n=st.integers(1, 4), half=st.integers(1, 3), seed=st.integers(0, 2**32))
    def test_what_one_wins_the_other_loses(self, n: int, half: int, seed: int) -> None:
        results = passing_race(np.random.default_rng(seed), n=n, races=2 * half).to_numpy()
        assert results.shape == (n + 3, n + 3)
        np.testing.assert_array_equal(results + results.T, np.ones((n + 3, n + 3)))
        np.testing.assert_array_equal(results.diagonal(), np.full(n + 3, 0.5))
        halves = results * 4 * half
        np.testing.assert_allclose(halves, halves.round(), atol=1e-9)
        assert np.all((results >= 0.0) & (results <= 1.0))

    @settings(max_examples=8)
    @given(n=st.integers(1, 4), half=st.integers(1, 3), seed=st.integers(0, 2**32))
    def test_both_variants_tell_of_the_same_races(self, n: int, half: int, seed: int) -> None:
        win_rates = passing_race(np.random.default_rng(seed), n=n, races=2 * half).iloc[3:, 3:]
        penalised = passing_race(np.random.default_rng(seed), n=n, races=2 * half, collision_penalty=True)
        assert list(penalised.index) == list(penalised.columns) == list(win_rates.index)
        shares = collision_shares(penalised.to_numpy())
        np.testing.assert_allclose(shares * 2 * half, (shares * 2 * half).round(), atol=1e-9)
        assert np.all((shares > -1e-9) & (shares < 1.0 + 1e-9))
        # Each collision takes what it gave the policy in points, at least 0 and at most 1, and one point more.
        lost = win_rates.to_numpy() - penalised.to_numpy()
        assert np.all((lost > shares - 1e-9) & (lost < 2 * shares + 1e-9))

    @pytest.mark.parametrize("collision_penalty", [False, True])
    def test_the_table_counts_the_races(self, monkeypatch: pytest.MonkeyPatch, collision_penalty: bool) -> None:
        raced: list[tuple[Drivers, Drivers, Cars]] = []

        def note(left: Drivers, right: Drivers, luck: Luck) -> Cars:
            raced.append((left, right, race(left, right, luck)))
            return raced[-1][2]

        monkeypatch.setattr(passing, "race", note)
        table = passing_race(np.random.default_rng(1), n=8, races=6, collision_penalty=collision_penalty)
        ((left, right, end),) = raced
        trained = passing.trained_drivers(8, np.random.default_rng(1))
        paces = np.concatenate([passing.BUILT_IN.pace, trained.pace]).tolist()  # these tell the drivers apart
        names = [f"built-in-{i}" for i in range(3)] + [f"driver-{i:02d}" for i in range(8)]
        results, sides = defaultdict(list), Counter[tuple[str, str]]()
        for place in range(len(left.pace)):
            on_the_left, on_the_right = (names[paces.index(side.pace[place])] for side in (left, right))
            points, hit = float(end.left_points()[place]), bool(end.collided[place]) and collision_penalty
            assert not (end.collided[place] and "built-in" in on_the_left + on_the_right)
            results[on_the_right, on_the_left].append(-1.0 if hit else points)
            results[on_the_left, on_the_right].append(-1.0 if hit else 1.0 - points)
            sides[on_the_left, on_the_right] += 1
        assert sides == {pair: 3 for pair in itertools.permutations(names, 2)}
        assert end.collided.any()
        assert table.shape == ((8, 8) if collision_penalty else (11, 11))
        for opponent, policy in itertools.permutations(table.index, 2):
            assert table.loc[opponent, policy] == pytest.approx(np.mean(results[opponent, policy]))

    def test_luck_differs_from_race_to_race(self, monkeypatch: pytest.MonkeyPatch) -> None:
        same = driver(0.93, wobble=0.01, races=2)
        monkeypatch.setattr(passing, "trained_drivers", lambda n, rng: same)
        results = passing_race(np.random.default_rng(0), n=2, races=20).to_numpy()
        assert 0.0 < results[3, 4] < 1.0

    def test_names_differ_and_sort_in_order(self) -> None:
        for n, last in ((1, "driver-00"), (12, "driver-11")):
            table = passing_race(np.random.default_rng(5), n=n, races=2)
            assert list(table.index) == list(table.columns) == sorted(set(table.index))
            assert list(table.index)[:3] == ["built-in-0", "built-in-1", "built-in-2"]
            assert table.index[-1] == last

    def test_the_same_seed_gives_the_same_table_and_another_seed_another(self) -> None:
        table = passing_race(np.random.default_rng(7), n=5, races=4)
        assert table.equals(passing_race(np.random.default_rng(7), n=5, races=4))
        assert not table.equals(passing_race(np.random.default_rng(8), n=5, races=4))

    def test_one_trained_driver_is_enough(self) -> None:
        table = passing_race(np.random.default_rng(0), n=1, races=2, collision_penalty=True)
        assert table.to_numpy().tolist() == [[0.5]]

    @pytest.mark.parametrize("n", [0, -1])
    def test_a_number_below_one_is_refused(self, n: int) -> None:
        with pytest.raises(ro.ProblemError, match=f"`n` must be at least 1, got {n}"):
            passing_race(np.random.default_rng(0), n=n)

    @pytest.mark.parametrize("races", [0, -2, 1, 7])
    def test_a_number_of_races_that_does_not_halve_is_refused(self, races: int) -> None:
        with pytest.raises(ro.ProblemError, match=f"`races` must be even and at least 2, .* got {races}"):
            passing_race(np.random.default_rng(0), n=2, races=races)


class Season(NamedTuple):
    """The paper's size: 43 trained and three built-in drivers, 20 races of each pair."""

    drivers: Drivers
    wins: FloatArray  # of the row driver against the column driver, the other way round than in the table
    collisions: FloatArray  # among trained drivers


def collision_shares(penalised: FloatArray) -> FloatArray:
    """In a race without a collision the two get 1 together, in one with a collision -2."""
    shares: FloatArray = (1.0 - penalised - penalised.T) / 3.0
    return shares


@pytest.fixture(scope="module")
def season() -> Season:
    seed = 0
    trained = passing.trained_drivers(43, np.random.default_rng(seed))
    win_rates = passing_race(np.random.default_rng(seed)).to_numpy()
    penalised = passing_race(np.random.default_rng(seed), collision_penalty=True).to_numpy()
    assert win_rates.shape == (46, 46)
    assert penalised.shape == (43, 43)
    drivers = Drivers(*map(np.concatenate, zip(passing.BUILT_IN, trained, strict=True)))
    return Season(drivers, win_rates.T, collision_shares(penalised))


class TestDefaultPopulation:
    @pytest.mark.slow
    def test_training_makes_drivers_faster(self, season: Season) -> None:
        pace = season.drivers.pace[3:]
        assert pace[:5].mean() + 0.02 < pace[-20:].mean()
        assert np.any(np.diff(pace) < 0.0)

    def test_faster_drivers_win_mostly_but_not_always(self, season: Season) -> None:
        pace, mean_wins = season.drivers.pace, (season.wins.sum(axis=1) - 0.5) / 45
        assert np.corrcoef(pace, mean_wins)[0, 1] > 0.85
        faster_wins = season.wins[pace[:, None] > pace[None, :]]
        assert 0.7 < faster_wins.mean() < 0.9
        assert np.mean(faster_wins < 0.5) > 0.03  # pairs in which the slower one wins more often

    def test_built_in_drivers_are_competitive(self, season: Season) -> None:
        mean_wins = season.wins[:3, 3:].mean(axis=1)
        assert np.all((mean_wins > 0.05) & (mean_wins < 0.9))

    def test_there_are_cyclic_triples(self, season: Season) -> None:
        beats = (season.wins > 0.5).astype(np.float64)
        cyclic, triples = np.trace(beats @ beats @ beats) / 3, math.comb(46, 3)
        assert 0.003 < cyclic / triples < 0.1  # by chance alone it would be a quarter

    def test_results_are_more_than_one_dimension_of_skill(self, season: Season) -> None:
        values = np.linalg.svd(season.wins - 0.5, compute_uv=False)  # in equal pairs, since wins and losses mirror
        assert values[2] > 0.15 * values[0]

    def test_collisions_happen_in_some_races_and_mostly_to_the_insisting(self, season: Season) -> None:
        of_each_driver = season.collisions.sum(axis=1) / 42
        share = of_each_driver.mean()
        assert 0.05 < share * (43 * 42) / (46 * 45) < 0.3  # of all races: the built-in drivers have none
        insistence = season.drivers.attack[3:] + season.drivers.defence[3:]
        assert np.corrcoef(insistence, of_each_driver)[0, 1] > 0.6

    def test_form_and_nerve_are_drawn_as_told(self) -> None:
        luck = draw_luck(5000, np.random.default_rng(0))
        assert luck.form.shape == luck.nerve.shape == (passing.MOODS, 2, 5000)
        assert abs(luck.form).max() == 3.0
        assert (luck.form.mean(), luck.form.std()) == pytest.approx((0.0, 1.0), abs=0.02)
        assert (luck.nerve.min(), luck.nerve.max()) == pytest.approx((0.0, 1.0), abs=0.001)

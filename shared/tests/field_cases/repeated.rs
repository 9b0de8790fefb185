use crate::support::*;

// 36: an event that is delivered more than once.

#[test]
fn case_36_a_tick_delivered_three_times_is_one_reading() {
    let mut world = fleet("10:00", [unused()]);
    for second in [0, 1, 150] {
        world.set_now(at("10:00") + seconds(second));
        tick(&mut world);
    }
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn case_36_a_tick_repeated_after_it_published_sends_one_message() {
    let mut world = fleet("10:00", [unused()]);
    world.refuse_stop(&id("i-a"), "OperationNotPermitted");
    tick(&mut world);
    fail(&mut world, "mark_published", "InternalServerError");
    for second in [0, 60, 120] {
        world.set_now(at("10:05") + seconds(second));
        tick(&mut world);
    }
    assert_eq!(told(&world), ["cannot_stop"]);
}

#[test]
fn case_36_unknown_ticks_are_counted_once_however_often_they_come() {
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    for second in [0, 1, 2, 60, 120] {
        world.set_now(at("10:00") + seconds(second));
        tick(&mut world);
    }
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn case_36_a_prewarm_delivered_twice_is_one_start() {
    let mut world = fleet("10:00", [node("i-a")]);
    prewarm(&mut world);
    prewarm_at(&mut world, "10:00:01");
    assert_eq!(count(&world, "start"), 1);
}

#[test]
fn case_36_two_prewarms_in_step_are_one_start() {
    let mut world = fleet("10:00", [node("i-a")]);
    let mut one = Stepper::new(prewarm_run(&world));
    one.run_until(&mut world, "claim");
    let two = prewarm(&mut world);
    let one = one.finish(&mut world);
    assert_eq!(count(&world, "start"), 1);
    assert!(is_200_or_202(&only_answer(&one)) && is_200_or_202(&only_answer(&two)), "{one:?} {two:?}");
}

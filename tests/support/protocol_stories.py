"""Histories of the protocol, written as one line each, and how to play one."""

# m1 leads and iteration 1 is open; then, word by word: who does it, or to which of the last claims
STORIES = {
    "a claim is given back": "claim release claim report",
    "a batch breaks for good": "claim fail claim fail:1 claim fail:2 claim look resume claim",
    "a zombie comes back": "claim a_lease_runs_out claim report report:1 report report:1",
    "everybody dies of a batch": "claim a_lease_runs_out claim a_lease_runs_out:1 claim"
    " a_lease_runs_out:2 claim look release:2 fail:2 report:2 renew look",
    "a report is repeated, and a lie": "claim report report lie ask_again",
    "two claims, two reports, and one of them forged": "claim claim report report:1 forge forge:1"
    " lie lie:1 look",
    "a report is repeated by another login": "claim report report:2 report:3 lie:2 release:2"
    " fail:2 renew:2",
    "an answer is lost": "claim:0/after ask_again ask_again report:0/after report",
    "a question is lost": "claim:0/before ask_again report:0/before report",
    "a zombie hands in": "claim a_lease_runs_out claim:2 report report:1 look",
    "a machine tries what another left": "claim a_lease_runs_out claim:2 a_lease_runs_out:1 claim"
    " look",
    "three machines break a batch": "claim fail:1 claim:2 fail:1 claim:3 fail:2 claim look claim"
    " resume claim:2",
    "all machines that are there break a batch": "a_machine_falls_silent:3 claim fail claim:2"
    " fail:1 look resume claim",
    "one machine alone breaks a batch": "a_machine_falls_silent:2 a_machine_falls_silent:3 claim"
    " fail:1 claim fail:1 claim fail:1 claim look resume claim",
    "one machine alone is killed again and again": "a_machine_falls_silent:2"
    " a_machine_falls_silent:3 claim a_lease_runs_out claim a_lease_runs_out claim"
    " a_lease_runs_out claim look",
    "a machine is set aside": "set_a_machine_aside claim claim:2 set_a_machine_aside claim"
    " a_machine_comes_back release_a_machine claim report",
    "a released machine may try again": "claim fail claim claim release_a_machine claim",
    "all but one are set aside": "set_a_machine_aside:2 set_a_machine_aside:3 claim fail claim"
    " fail:1 claim fail:2 claim look",
    "a worker lacks what is required": "move claim claim:1 claim:3 claim:2 report report:1 claim:3"
    " claim",
    "only those that may play it are waited for": "move claim claim:1 a_machine_falls_silent:2"
    " claim fail claim:3 claim fail claim fail look claim",
    "all that may play it break it": "move claim claim:1 claim fail claim:2 fail claim:3"
    " look claim",
    "a worker leaves the run": "a_worker_leaves_or_takes_the_run claim claim:1 fail claim:1"
    " a_worker_leaves_or_takes_the_run:2 a_worker_leaves_or_takes_the_run:3 claim:2 claim:1"
    " a_worker_leaves_or_takes_the_run claim report",
    "forged": "claim forge claim claim_as_another report_too_much report_too_much:1"
    " report_too_much:2 report_too_much:3 report forge forge:1",
    "nothing but what is refused": "claim stop report claim look",
    "the owner stops it": "claim claim play stop report renew claim look apply open",
    "the owner stops it before anybody came": "stop claim look open",
    "it is stopped while engines are built": "look stop open",
    "the owner pauses it": "claim pause report claim renew resume claim",
    "two workers, no more work": "claim claim claim report report:1 claim",
    "a hasty master": "play look apply_in_haste play look apply_in_haste apply",
    "results come in the wrong order": "move play play play play look apply_in_haste apply",
    "a step is lost and done again": "look play play look apply:0/before apply:0/after apply move",
    "an opening is lost and done again": "open look open:0/after open look open",
    "a build takes too long": "look play play look apply open look open",
    "two masters": "look become_master:2 the_mastership_runs_out become_master:2 look open move:2",
    "a master comes back": "become_master look resign become_master:2 look look:2 open:2",
    "a master of the same name is another one": "become_master a_replaced_master_writes"
    " a_replaced_master_writes:1 look become_master:2 the_mastership_runs_out become_master:2"
    " become_master a_replaced_master_writes:2 a_replaced_master_writes:3 look:2",
    "the whole run": "move play play play play move move play play play play move move finish",
}


def tell(machine, story):
    """Play a story; `act:pick/cut` are the words."""
    told = machine()
    try:
        told.begin()
        for word in story.split():
            act, _, how = word.partition(":")
            pick, _, cut = how.partition("/")
            getattr(told, act)(int(pick or 0), cut or None)
            told.the_database_is_the_model()
            told.every_count_is_right()
    finally:
        told.teardown()

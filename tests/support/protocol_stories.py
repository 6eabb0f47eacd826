"""Histories of the protocol, written as one line each, and how to play one."""

from protocol_machine import ProtocolMachine

# m1 leads the first run, and its iteration 1 is open; then, word by word: who does it, or to which
# of the last claims. For masters 4 is m2 of the first run, and 1 is m1 of the second.
STORIES = {
    "a claim is given back": "claim release claim report",
    "a batch breaks for good": "claim fail claim fail:1 claim fail:2 claim look resume claim",
    "void games of attempts add up": "claim fail:2 claim:2 report:1 report:2",
    "a late report": "claim a_lease_expires claim report report:1 report report:1",
    "every machine dies of a batch": "claim a_lease_expires claim a_lease_expires:1 claim"
    " a_lease_expires:2 claim look release:2 fail:2 report:2 renew look",
    "a report is repeated, and a lie": "claim report report lie ask_again",
    "two claims, two reports, and one of them forged": "claim claim report report:1 forge forge:1"
    " forge:2 lie lie:1 look",
    "a response is lost": "claim:0/after ask_again ask_again report:0/after report",
    "a request is lost": "claim:0/before ask_again report:0/before report",
    "a failure is lost and told again": "claim fail:2/after fail:2 claim:2 fail:1/before fail:1",
    "two have one batch": "claim a_lease_expires claim:2 report report:1 look",
    "who had a batch before may neither fail nor release it": "claim a_lease_expires claim:2 fail"
    " release report:1",
    "a machine tries what another left": "claim a_lease_expires claim:2 a_lease_expires:1 claim"
    " look",
    "three machines break a batch": "claim fail:1 claim:2 fail:1 claim:3 fail:2 claim look claim"
    " resume claim:2",
    "all machines that are there break a batch": "a_machine_falls_silent:3 claim fail claim:2"
    " fail:1 look resume claim",
    "one machine alone breaks a batch": "a_machine_falls_silent:2 a_machine_falls_silent:3 claim"
    " fail:1 claim fail:1 claim fail:1 claim look resume claim",
    "one machine alone breaks every batch": "a_machine_falls_silent:2 a_machine_falls_silent:3 move"
    " claim claim claim fail fail:1 fail:2 look resume claim",
    "one machine alone is killed again and again": "a_machine_falls_silent:2"
    " a_machine_falls_silent:3 claim a_lease_expires claim a_lease_expires claim"
    " a_lease_expires claim look",
    "a machine is set aside": "set_aside claim claim:2 set_aside claim a_machine_comes_back"
    " release_machine claim report",
    "a released machine may try again": "claim fail claim claim release_machine claim",
    "all but one are set aside": "set_aside:2 set_aside:3 claim fail claim fail:1 claim fail:2"
    " claim look",
    "a worker lacks what is required": "move claim claim:1 claim:3 claim:2 report report:1 claim:3"
    " claim",
    "only those that may play it are waited for": "move claim claim:1 a_machine_falls_silent:2"
    " claim fail claim:3 claim fail claim fail look claim",
    "all that may play it break it": "move claim claim:1 claim fail claim:2 fail claim:3"
    " look claim",
    "forged": "claim forge forge:1 forge:2 speak_for_another:2"
    " report_of_another_batch report_of_another_batch:1 report report_of_another_batch forge",
    "the owner stops it": "claim claim play stop report renew claim look apply open",
    "the owner stops it before a worker came": "stop claim look open",
    "it is stopped while engines are built": "look stop open",
    "the owner pauses it": "claim pause report claim renew resume claim",
    "leases are renewed": "claim a_lease_expires renew claim:2 report a_lease_expires:1 renew:2"
    " claim:3 look",
    "two workers, no more work": "claim claim claim report report:1 claim",
    "a worker holds what its slots need": "move claim claim claim claim claim:1 ask_again claim"
    " report claim",
    "a master decides too early": "play look apply_in_haste play look apply_in_haste apply",
    "results come in the wrong order": "move play play play play look apply_in_haste apply",
    "a step is lost and done again": "look play play look apply:0/before apply:0/after apply move",
    "an opening is lost and done again": "open look open:0/after open look open",
    "a build takes too long": "look play play look apply open look open",
    "two masters": "look become_master:4 a_master_lease_expires become_master:4 look open move:4",
    "a master comes back": "become_master look resign become_master:4 look look:4 open:4",
    "a master of the same name is another one": "become_master a_replaced_master_writes"
    " a_replaced_master_writes:1 look become_master:4 a_master_lease_expires become_master:4"
    " become_master a_replaced_master_writes:2 a_replaced_master_writes:3 look:4",
    "a run is played to its end": "move play play play play move move play play move move finish",
    "a machine is revoked": "claim claim:2 revoke report release fail renew claim ask_again invite"
    " claim report:1 report:2",
    "a machine is revoked while its lease has expired": "claim a_lease_expires revoke claim:2"
    " invite claim withdraw:2 report:1 claim:2",
    "two runs": "become_master:1 move:1 claim claim claim claim:1 claim:2 report report:1 report:2"
    " report:3 look look:1 pause claim:1 claim:2 stop:1 report:4 report:5",
}


def tell(machine: type[ProtocolMachine], story: str) -> None:
    """Play a story; `act:pick/cut` are the words."""
    told = machine()
    try:
        told.begin()
        for word in story.split():
            act, _, how = word.partition(":")
            pick, _, cut = how.partition("/")
            told.act(act, int(pick or 0), cut or None)
            told.the_database_is_the_model()
    finally:
        told.teardown()

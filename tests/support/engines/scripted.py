"""A UCI engine that does what it is told to, and all that an engine must not do.

It moves by a fixed list, or the legal move that a hash of the position picks; at one ply of a game
it may misbehave. It imports chess only where it has to find a legal move, to start quickly.
"""

import argparse
import os
import signal
import sys
import time
from hashlib import sha256
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", default="", help="what it plays, by the ply of the game")
    parser.add_argument("--scores", default="", help="cp, mateN or -, by the ply of the game")
    parser.add_argument("--chess960", action="store_true", help="castles as soon as it can")
    parser.add_argument("--option", action="append", default=[], help="an option it declares")
    parser.add_argument("--sleep", type=float, default=0.0, help="seconds a move")
    parser.add_argument("--gate", default="", help="a file that has to be there before it moves")
    parser.add_argument("--think", type=float, help="seconds at --at-ply, unless told to stop")
    parser.add_argument("--fault", default="", help="what goes wrong at --at-ply, or at the start")
    parser.add_argument("--at-ply", type=int, default=0)
    parser.add_argument("--start-pause", type=float, default=0.0, help="seconds until uciok")
    parser.add_argument("--ready-pause", type=float, default=0.0, help="seconds until readyok")
    parser.add_argument("--lines", type=int, default=0, help="info lines of every search")
    parser.add_argument("--skip", type=int, default=0, help="times it goes right before")
    parser.add_argument("--only-once", default="", help="a file that says it has gone wrong")
    parser.add_argument("--says", default="", help="a file of bytes that it writes before a move")
    parser.add_argument("--log", default="", help="a file for the commands it gets")
    parser.add_argument("--pid", default="", help="a file for its own pid")
    parser.add_argument("--child", default="", help="a file for the pid of a child it leaves")
    parser.add_argument("--stray", default="", help="a file for the pids of daemons it leaves")
    parser.add_argument("--bare", action="store_true", help="whether they have no environment")
    return parser.parse_args()


class Engine:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.moves: list[str] = []
        self.fen = "startpos"
        self.nodes = 77

    def run(self) -> None:
        if self.given.pid:
            Path(self.given.pid).write_text(str(os.getpid()))
        if self.given.child:
            self.leave_child()
        if self.given.stray:
            self.leave_daemon()
        while line := sys.stdin.readline():
            self.note(line)
            self.obey(line.split())
        if self.given.fault == "ignore-quit":
            hang()

    def obey(self, words: list[str]) -> None:
        match words:
            case ["uci"]:
                self.introduce()
            case ["isready"]:
                time.sleep(self.given.ready_pause)
                if self.given.fault != "no-readyok":
                    say("readyok")
            case ["position", *rest]:
                self.set_up(rest)
            case ["go", *limit]:
                self.nodes = int(limit[1]) if limit[0] == "nodes" else 77
                self.go()
            case ["quit"]:
                if self.given.fault != "ignore-quit":
                    sys.exit(0)
                hang()

    def introduce(self) -> None:
        time.sleep(self.given.start_pause)
        if self.given.fault == "no-uciok":
            return
        if self.given.fault.endswith("-at-start"):
            self.go_wrong(self.given.fault.removesuffix("-at-start"))
        say("id name scripted")
        for option in self.given.option:
            say(f"option name {option}")
        if self.given.chess960:
            say("option name UCI_Chess960 type check default false")
        say("uciok")
        if self.given.fault == "deaf":
            hang()

    def set_up(self, words: list[str]) -> None:
        split = words.index("moves") if "moves" in words else len(words)
        self.fen = "startpos" if words[0] == "startpos" else " ".join(words[1:split])
        self.moves = words[split + 1 :]

    def go(self) -> None:
        ply = len(self.moves)
        now = ply == self.given.at_ply and self.is_due()
        if now and self.given.fault:
            self.go_wrong(self.given.fault)
        if now and self.given.think is not None:
            self.ponder_until_stop(self.given.think)
        time.sleep(self.given.sleep)
        while self.given.gate and not Path(self.given.gate).exists():
            time.sleep(0.005)
        for depth in range(self.given.lines):
            say(f"info depth {depth} score cp 1 nodes {depth} pv a1a1")
        self.tell_score(ply)
        if self.given.says:
            os.write(1, Path(self.given.says).read_bytes())
        say(f"bestmove {self.choice(ply)}")

    def go_wrong(self, fault: str) -> None:
        if fault in SAYS:
            say(SAYS[fault])
            hang()
        getattr(self, fault.replace("-", "_"), lambda: None)()

    def is_due(self) -> bool:
        """Whether it goes wrong now, which it does after so many times, and once if a file says."""
        self.given.skip -= 1
        if self.given.skip >= 0:
            return False
        marker = self.given.only_once and Path(self.given.only_once)
        first = not (marker and marker.exists())
        if marker:
            marker.touch()
        return first

    def ponder_until_stop(self, seconds: float) -> None:
        import select

        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        if ready:
            self.note(sys.stdin.readline())

    def tell_score(self, ply: int) -> None:
        scores = self.given.scores.split()
        score = scores[ply % len(scores)] if scores else "0"
        if score.startswith(("mate", "-mate")):
            say(f"info depth 9 score mate {score.replace('mate', '')} nodes {self.nodes} pv a1a1")
        elif score != "-":
            say(f"info depth 9 seldepth 12 score cp {score} nodes {self.nodes} nps 1000 pv a1a1")
        say("info string a score of 9999 is what this string is not about")

    def choice(self, ply: int) -> str:
        moves = self.given.moves.split()
        if ply < len(moves):
            return moves[ply]
        board = self.board()
        moves = list(board.legal_moves)
        if self.given.chess960:
            moves = [move for move in moves if board.is_castling(move)] or moves
        legal = sorted(move.uci() for move in moves)
        return legal[int.from_bytes(sha256(board.fen().encode()).digest()[:4]) % len(legal)]

    def board(self):
        import chess

        fen = chess.STARTING_FEN if self.fen == "startpos" else self.fen
        board = chess.Board(fen, chess960=self.given.chess960)
        for move in self.moves:
            board.push_uci(move)
        return board

    def note(self, line: str) -> None:
        if self.given.log:
            with Path(self.given.log).open("a", encoding="utf-8") as file:
                file.write(line)

    def leave_child(self) -> None:
        child = os.fork()
        if child == 0:
            hang()
        Path(self.given.child).write_text(str(child))

    def leave_daemon(self) -> None:
        """In a session of its own, its parent gone, deaf to SIGTERM; wait until that is so."""
        told, telling = os.pipe()
        between = os.fork()
        if between == 0:
            os.setsid()
            if os.fork() == 0:
                self.be_daemon(telling)
            os._exit(0)
        os.close(telling)
        os.waitpid(between, 0)
        os.read(told, 1)
        os.close(told)

    def be_daemon(self, telling: int) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with Path(self.given.stray).open("a") as file:
            file.write(f"{os.getpid()}\n")
        os.close(telling)
        for stream in range(3):
            os.close(stream)
        environment = {} if self.given.bare else dict(os.environ)
        sleep = "import time\nwhile True: time.sleep(60)"
        words = [sys.executable, "-S", "-c", sleep, self.given.stray]
        os.execve(sys.executable, words, environment)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def hang() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.close(2)  # whose end must not wake the worker time and again
    while True:
        time.sleep(60)


SAYS = {
    "illegal": "bestmove e1e8",
    "no-move": "bestmove (none)",
    "null": "bestmove 0000",
    "empty": "bestmove",
    "garbage": "bestmove \x01\x02garbage",
}
"""Faults that are an answer, after which it hangs."""


class FaultyEngine(Engine):
    """What else goes wrong; the name of a fault has hyphens for underscores."""

    def crash(self) -> None:
        os.write(2, b"a hint\nthread 'main' panicked at src/search.rs:7\x1b[2J\n")
        os.kill(os.getpid(), signal.SIGSEGV)

    def exit(self) -> None:
        os._exit(0)

    def exit_3(self) -> None:
        os._exit(3)

    def hang(self) -> None:
        hang()

    def flood(self) -> None:
        while True:
            sys.stdout.write("x" * 4096)

    def babble(self) -> None:
        while True:
            say("info depth 1 score cp 1 nodes 1 pv a1a1")

    def wrong_side(self) -> None:
        board = self.board()
        board.turn = not board.turn
        say(f"bestmove {next(iter(board.legal_moves)).uci()}")
        hang()

    def twice(self) -> None:
        move = self.choice(len(self.moves))
        # In one go: a second answer behind the next question is not told from a wrong first.
        say(f"bestmove {move}\nbestmove {move}")
        while sys.stdin.readline():
            pass

    def again(self) -> None:
        """An answer, and when the next question may have been put, the same answer once more."""
        say(f"bestmove {self.choice(len(self.moves))}")
        time.sleep(0.2)

    def binary(self) -> None:
        os.write(1, bytes(range(256)) * 8 + b"\xff\x00bestmove e7e5\n")

    def stderr_flood(self) -> None:
        for _ in range(5000):
            os.write(2, b"x" * 1000)

    def spin(self) -> None:
        say(f"bestmove {self.choice(len(self.moves))}")
        while True:
            pass

    def liar(self) -> None:
        time.sleep(1.0)
        say("info depth 1 score cp 0 time 1 nodes 1")

    def eat(self) -> None:
        eaten = []
        while True:
            eaten.append(bytearray(2**24))

    def write(self) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
        with Path(self.given.log).open("ab") as file:
            while True:
                file.write(bytes(2**20))

    def fill(self) -> None:
        """Many files, none of which is large."""
        for number in range(10**9):
            Path(f"{number}").write_bytes(b"some")

    def close_output(self) -> None:
        os.close(1)
        hang()


if __name__ == "__main__":
    FaultyEngine(arguments()).run()

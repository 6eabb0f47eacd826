"""A UCI engine that is tuned by options: it takes any legal move, and which one they decide."""

import json
import sys
from pathlib import Path

import chess

OPTIONS = {"boldness": 3, "patience": 10}


def choose(board: chess.Board) -> chess.Move:
    moves = sorted(board.legal_moves, key=chess.Move.uci)
    return moves[(OPTIONS["boldness"] * board.fullmove_number + OPTIONS["patience"]) % len(moves)]


def main() -> None:
    board = chess.Board()
    for line in sys.stdin:
        match line.split():
            case ["uci"]:
                print("id name optional")
                for name, value in OPTIONS.items():
                    print(f"option name {name} type spin default {value} min 0 max 50")
                print("option name EvalFile type string default <empty>")
                print("uciok", flush=True)
            case ["isready"]:
                print("readyok", flush=True)
            case ["setoption", "name", "EvalFile", "value", path]:
                OPTIONS.update(json.loads(Path(path).read_text()))
            case ["setoption", "name", name, "value", value]:
                OPTIONS[name] = int(value)
            case ["position", "startpos", *moves]:
                board = chess.Board()
                for move in moves[1:]:
                    board.push_uci(move)
            case ["position", "fen", a, b, c, d, e, f, *moves]:
                board = chess.Board(" ".join((a, b, c, d, e, f)))
                for move in moves[1:]:
                    board.push_uci(move)
            case ["go", *limit]:
                nodes = limit[1] if limit[0] == "nodes" else 10
                print(f"info depth 1 nodes {nodes} score cp 0")
                print(f"bestmove {choose(board)}", flush=True)
            case ["quit"]:
                return


if __name__ == "__main__":
    main()

//! The static evaluation: one pass over the pieces, then what depends on all
//! of their attacks together.

use crate::attacks;
use crate::bitboard::*;
use crate::engine_constants::*;
use crate::pawns::{PawnStructure, PawnTable};
use crate::piece_square_tables::{self, edge_distance_bonus};
use crate::position::Position;
use crate::tapered::*;
use crate::types::*;

/// Evaluations stay well inside the range of mate scores.
pub const MAX_EVALUATION: Score = 29_000;

/// Keeps the square of the danger to a king in range whatever the constants.
const MOST_DANGER: Score = 4000;

/// Knights and bishops count one, rooks two, queens four; all men make 24.
const PHASE: [Score; 6] = [0, 1, 1, 2, 4, 0];
const FULL_PHASE: Score = 24;

const MINORS: [Kind; 2] = [Kind::Knight, Kind::Bishop];

/// The score from the point of view of the side to move.
pub fn evaluate(position: &Position, pawn_table: &mut PawnTable) -> Score {
    if position.is_insufficient_material() {
        return 0;
    }
    let mut evaluation = Evaluation::new(position, pawn_table.get(position));
    let score = evaluation.white_minus_black();
    let own = if position.side == Color::White { score } else { -score };
    (own + TEMPO_BONUS).clamp(-MAX_EVALUATION, MAX_EVALUATION)
}

struct Evaluation<'a> {
    position: &'a Position,
    structure: PawnStructure,
    occupied: Bitboard,
    king_ring: [Bitboard; 2],
    /// Squares attacked by each side's kinds of pieces.
    attacks: [[Bitboard; 6]; 2],
    all_attacks: [Bitboard; 2],
    king_attackers: [usize; 2],
    king_threat: [Score; 2],
}

impl<'a> Evaluation<'a> {
    fn new(position: &'a Position, structure: PawnStructure) -> Evaluation<'a> {
        let mut attacks = [[0; 6]; 2];
        let mut king_ring = [0; 2];
        for color in [Color::White, Color::Black] {
            let side = color as usize;
            let king = attacks::king(position.king(color));
            attacks[side][Kind::Pawn as usize] =
                attacks::pawns(color, position.of(color, Kind::Pawn));
            attacks[side][Kind::King as usize] = king;
            king_ring[side] = king | forward(color, king) | bit(position.king(color));
        }
        Evaluation {
            position,
            structure,
            occupied: position.occupied(),
            king_ring,
            attacks,
            all_attacks: [0; 2],
            king_attackers: [0; 2],
            king_threat: [0; 2],
        }
    }

    fn white_minus_black(&mut self) -> Score {
        let mut score = self.structure.score;
        score += self.pieces(Color::White) - self.pieces(Color::Black);
        for color in [Color::White, Color::Black] {
            self.all_attacks[color as usize] =
                self.attacks[color as usize].iter().fold(0, |a, b| a | b);
        }
        score += self.interplay(Color::White) - self.interplay(Color::Black);
        let phase = self.phase();
        let score = score.blend(phase) + self.pawn_races() + self.mop_up();
        score * self.endgame_scale(score) / 64
    }

    fn phase(&self) -> Score {
        let men = |kind: Kind| PHASE[kind as usize] * count(self.position.kinds[kind as usize]);
        KINDS.iter().map(|&kind| men(kind)).sum::<Score>().min(FULL_PHASE)
    }

    // ---- piece by piece -----------------------------------------------------

    fn pieces(&mut self, us: Color) -> Tapered {
        let mut score = self.piece_squares(us, Kind::King);
        score += self.knights(us) + self.bishops(us) + self.rooks(us) + self.queens(us);
        score
    }

    fn piece_squares(&self, us: Color, kind: Kind) -> Tapered {
        Squares(self.position.of(us, kind)).fold(Tapered::default(), |score, square| {
            score + from_pair(piece_square_tables::bonus(kind, relative_square(us, square)))
        })
    }

    /// Notes a piece's attacks and counts the squares it can usefully go to.
    fn note_attacks(&mut self, us: Color, kind: Kind, attacks: Bitboard, threat: Score) -> usize {
        self.attacks[us as usize][kind as usize] |= attacks;
        let near_king = attacks & self.king_ring[!us as usize];
        if near_king != 0 {
            self.king_attackers[us as usize] += 1;
            self.king_threat[us as usize] += threat * count(near_king);
        }
        let guarded = self.attacks[!us as usize][Kind::Pawn as usize];
        let own = self.position.of(us, Kind::Pawn) | self.position.of(us, Kind::King);
        count(attacks & !guarded & !own) as usize
    }

    fn knights(&mut self, us: Color) -> Tapered {
        let mut score = self.piece_squares(us, Kind::Knight);
        for square in Squares(self.position.of(us, Kind::Knight)) {
            let attacks = attacks::knight(square);
            let squares = self.note_attacks(us, Kind::Knight, attacks, KING_THREAT_BONUS_KNIGHT);
            score += from_pair(KNIGHT_VALUE_PAIR) + both(VALUE_KNIGHT_MOBILITY[squares.min(8)]);
            if self.is_outpost(us, square) {
                score += pair(VALUE_KNIGHT_OUTPOST, VALUE_KNIGHT_OUTPOST / 2);
            }
            score += both(self.knight_targets(us, attacks));
        }
        score
    }

    /// Guarded by a pawn and out of reach of the enemy's.
    fn is_outpost(&self, us: Color, square: Square) -> bool {
        let guarded = self.attacks[us as usize][Kind::Pawn as usize] & bit(square) != 0;
        let rank = relative_rank(us, square);
        guarded && rank >= 3 && self.structure.attack_span[!us as usize] & bit(square) == 0
    }

    fn knight_targets(&self, us: Color, attacks: Bitboard) -> Score {
        let pawns = attacks & self.position.of(!us, Kind::Pawn);
        let big = self.position.of(!us, Kind::Rook)
            | self.position.of(!us, Kind::Queen)
            | self.position.of(!us, Kind::King);
        let pawn_bonus = if pawns != 0 { KNIGHT_ATTACKS_PAWN_GENERAL_BONUS } else { 0 };
        let fork_bonus = if has_several(attacks & big) { KNIGHT_FORK_THREAT_SCORE } else { 0 };
        pawn_bonus + fork_bonus
    }

    fn bishops(&mut self, us: Color) -> Tapered {
        let mut score = self.piece_squares(us, Kind::Bishop);
        let bishops = self.position.of(us, Kind::Bishop);
        let see_through = self.occupied ^ self.position.of(us, Kind::Queen);
        for square in Squares(bishops) {
            let attacks = attacks::bishop(square, see_through);
            let squares = self.note_attacks(us, Kind::Bishop, attacks, KING_THREAT_BONUS_BISHOP);
            score += from_pair(BISHOP_VALUE_PAIR) + both(VALUE_BISHOP_MOBILITY[squares.min(13)]);
            score += both(VALUE_BISHOP_OWN_COLOUR_PAWN) * self.pawns_on_colour(us, square);
            if self.is_trapped_bishop(us, square) {
                score -= both(TRAPPED_BISHOP_PENALTY);
            }
        }
        if bishops & LIGHT_SQUARES != 0 && bishops & !LIGHT_SQUARES != 0 {
            score += both(self.bishop_pair(us));
        }
        score
    }

    fn bishop_pair(&self, us: Color) -> Score {
        let pawns_lost = 8 - count(self.position.of(us, Kind::Pawn));
        VALUE_BISHOP_PAIR + VALUE_BISHOP_PAIR_FEWER_PAWNS_BONUS * pawns_lost
    }

    fn pawns_on_colour(&self, us: Color, square: Square) -> Score {
        let light = LIGHT_SQUARES & bit(square) != 0;
        let colour = if light { LIGHT_SQUARES } else { !LIGHT_SQUARES };
        count(self.position.of(us, Kind::Pawn) & colour)
    }

    /// On a7 or h7 (or a6, h6) behind a pawn that shuts it in.
    fn is_trapped_bishop(&self, us: Color, square: Square) -> bool {
        let rank = relative_rank(us, square);
        if !(rank == 6 || rank == 5) || !(file_of(square) == 0 || file_of(square) == 7) {
            return false;
        }
        let gate = attacks::pawns(!us, bit(square));
        gate & self.position.of(!us, Kind::Pawn) & self.attacks[!us as usize][Kind::Pawn as usize]
            != 0
    }

    fn rooks(&mut self, us: Color) -> Tapered {
        let mut score = self.piece_squares(us, Kind::Rook);
        let rooks = self.position.of(us, Kind::Rook);
        let see_through = self.occupied ^ rooks ^ self.position.of(us, Kind::Queen);
        for square in Squares(rooks) {
            let attacks = attacks::rook(square, see_through);
            let squares = self.note_attacks(us, Kind::Rook, attacks, KING_THREAT_BONUS_ROOK);
            score += from_pair(ROOK_VALUE_PAIR) + both(VALUE_ROOK_MOBILITY[squares.min(14)]);
            score += self.rook_file(us, square);
            if relative_rank(us, square) == 6 {
                score += both(ROOKS_ON_SEVENTH_RANK_BONUS);
            }
            if squares <= 3 && self.is_shut_in(us, square) {
                score -= pair(TRAPPED_ROOK_PENALTY, 0);
            }
            if file_bb(square) & rooks & !bit(square) != 0 {
                score += both(VALUE_ROOKS_ON_SAME_FILE);
            }
        }
        score
    }

    fn rook_file(&self, us: Color, square: Square) -> Tapered {
        let file = file_bb(square);
        if file & self.position.of(us, Kind::Pawn) != 0 {
            Tapered::default()
        } else if file & self.position.of(!us, Kind::Pawn) != 0 {
            pair(ROOK_SEMI_OPEN_FILE_BONUS, ROOK_SEMI_OPEN_FILE_BONUS / 2)
        } else {
            pair(ROOK_OPEN_FILE_BONUS, ROOK_OPEN_FILE_BONUS / 2)
        }
    }

    /// Its own king stands between it and the centre on the back rank.
    fn is_shut_in(&self, us: Color, square: Square) -> bool {
        let king = self.position.king(us);
        let (rook_file, king_file) = (file_of(square), file_of(king));
        let outside = (king_file < 4) == (rook_file < king_file) && rook_file != king_file;
        outside && relative_rank(us, king) == 0 && relative_rank(us, square) <= 1
    }

    fn queens(&mut self, us: Color) -> Tapered {
        let mut score = self.piece_squares(us, Kind::Queen);
        for square in Squares(self.position.of(us, Kind::Queen)) {
            let attacks = attacks::queen(square, self.occupied);
            let squares = self.note_attacks(us, Kind::Queen, attacks, KING_THREAT_BONUS_QUEEN);
            score += from_pair(QUEEN_VALUE_PAIR) + both(VALUE_QUEEN_MOBILITY[squares.min(27)]);
        }
        score
    }

    // ---- what needs the attacks of both sides ---------------------------------

    fn interplay(&self, us: Color) -> Tapered {
        let mut score = pair(self.king_danger(us) + self.king_shelter(us), 0);
        score += self.threats(us) + self.passed_pawns(us);
        score + pair(self.space(us), 0)
    }

    /// What our attack on the enemy king is worth: little at first, then more
    /// and more.
    fn king_danger(&self, us: Color) -> Score {
        let last = KING_ATTACKERS_PERCENT.len() - 1;
        let attackers = self.king_attackers[us as usize];
        let percent = KING_ATTACKERS_PERCENT[attackers.saturating_sub(1).min(last)];
        let danger = self.king_threat[us as usize] * percent / 100
            + KING_SAFE_CHECK_BONUS * self.safe_checks(us)
            + KING_LINE_EXPOSURE_BONUS * self.lines_to_king(us);
        let danger = danger.clamp(-MOST_DANGER, MOST_DANGER);
        danger + danger * danger / KING_DANGER_SQUARE_DIVISOR.max(1)
    }

    /// Kinds of pieces that can give check on a square no enemy guards.
    fn safe_checks(&self, us: Color) -> Score {
        let king = self.position.king(!us);
        let own = &self.attacks[us as usize];
        let free = !self.all_attacks[!us as usize] & !self.position.colors[us as usize];
        let diagonal = attacks::bishop(king, self.occupied) & free;
        let straight = attacks::rook(king, self.occupied) & free;
        let from = |squares: Bitboard, kind: Kind| Score::from(squares & own[kind as usize] != 0);
        from(attacks::knight(king) & free, Kind::Knight)
            + from(diagonal, Kind::Bishop)
            + from(straight, Kind::Rook)
            + from(diagonal | straight, Kind::Queen)
    }

    /// How far a queen would see from the enemy king's square, if we have one.
    fn lines_to_king(&self, us: Color) -> Score {
        if self.position.of(us, Kind::Queen) == 0 {
            return 0;
        }
        let king = self.position.king(!us);
        count(
            attacks::queen(king, self.position.colors[!us as usize])
                & !self.position.colors[!us as usize],
        )
    }

    fn king_shelter(&self, us: Color) -> Score {
        let king = self.position.king(us);
        let centre = file_of(king).clamp(1, 6);
        let row = relative_rank(us, king);
        (centre - 1..=centre + 1).map(|file| self.shelter_on_file(us, row, file)).sum()
    }

    fn shelter_on_file(&self, us: Color, row: usize, file: usize) -> Score {
        let nearest = |pawns: Bitboard| {
            Squares(pawns & (FILE_A << file))
                .map(|s| relative_rank(us, s))
                .filter(|&r| r > row)
                .min()
        };
        let shield = match nearest(self.position.of(us, Kind::Pawn)) {
            None => -KING_OPEN_FILE_PENALTY,
            Some(rank) => VALUE_KING_SHIELD.get(rank - row - 1).copied().unwrap_or(0),
        };
        let storm = match nearest(self.position.of(!us, Kind::Pawn)) {
            Some(rank) if rank - row <= 3 => KING_PAWN_STORM_PENALTY,
            _ => 0,
        };
        shield - storm
    }

    fn threats(&self, us: Color) -> Tapered {
        let position = self.position;
        let own = &self.attacks[us as usize];
        let minors = position.of(!us, Kind::Knight) | position.of(!us, Kind::Bishop);
        let majors = position.of(!us, Kind::Rook) | position.of(!us, Kind::Queen);
        let by_pawn = own[Kind::Pawn as usize] & (minors | majors);
        let by_minor = MINORS.iter().fold(0, |set, &kind| set | own[kind as usize]) & majors;
        let hanging = self.all_attacks[us as usize]
            & !self.all_attacks[!us as usize]
            & (minors | majors | position.of(!us, Kind::Pawn));
        both(PAWN_ATTACKS_PIECE_BONUS * count(by_pawn))
            + both(MINOR_ATTACKS_MAJOR_BONUS * count(by_minor))
            + both(HANGING_PIECE_BONUS * count(hanging))
    }

    /// Squares behind or beside the own centre pawns that the enemy's pawns
    /// leave alone; worth nothing once the pieces are off.
    fn space(&self, us: Color) -> Score {
        let pawns = self.position.of(us, Kind::Pawn);
        let behind = forward_fill(!us, pawns);
        let ranks = match us {
            Color::White => rank_bb(1) | rank_bb(2) | rank_bb(3),
            Color::Black => rank_bb(6) | rank_bb(5) | rank_bb(4),
        };
        let enemy = self.attacks[!us as usize][Kind::Pawn as usize];
        let safe = CENTRE_FILES & ranks & !pawns & !enemy;
        SPACE_BONUS_PER_SQUARE * (count(safe) + count(safe & behind)) / 2
    }

    fn passed_pawns(&self, us: Color) -> Tapered {
        let mut score = Tapered::default();
        let rooks = self.position.of(us, Kind::Rook);
        for square in Squares(self.structure.passed & self.position.of(us, Kind::Pawn)) {
            let stop = lowest(forward(us, bit(square)));
            score -= both(self.blockade(us, stop));
            let behind = attacks::rook(square, self.occupied) & forward_fill(!us, bit(square));
            if behind & rooks != 0 {
                score += both(VALUE_ROOK_BEHIND_PASSED_PAWN);
            }
            score += pair(0, self.kings_and_pawn(us, square, stop));
        }
        score
    }

    fn blockade(&self, us: Color, stop: Square) -> Score {
        if self.position.colors[!us as usize] & bit(stop) == 0 {
            return 0;
        }
        let by_knight = self.position.kind_at(stop) == Some(Kind::Knight);
        BLOCKED_PASSED_PAWN_PENALTY + if by_knight { KNIGHT_BLOCKADE_PENALTY } else { 0 }
    }

    /// The nearer the enemy king to the square in front, the worse; the own
    /// king helps next to the pawn.
    fn kings_and_pawn(&self, us: Color, square: Square, stop: Square) -> Score {
        let steps = relative_rank(us, square) as Score - 1;
        let (own, enemy) = (self.position.king(us), self.position.king(!us));
        let near = (distance(enemy, stop) * 2 - distance(own, stop)) * steps;
        let support = if distance(own, square) == 1 { VALUE_KING_SUPPORTS_PASSED_PAWN } else { 0 };
        near * VALUE_KING_DISTANCE_PASSED_PAWN_MULTIPLIER / 2 + support
    }

    // ---- endgames -----------------------------------------------------------

    fn pawn_races(&self) -> Score {
        self.runner(Color::White) - self.runner(Color::Black)
    }

    /// The best passed pawn with a free path that the enemy king cannot catch.
    fn runner(&self, us: Color) -> Score {
        let enemy = self.position.king(!us);
        let late = Score::from(self.position.side != us);
        let free = |&square: &Square| {
            let steps = 7 - relative_rank(us, square) as Score;
            let goal = relative_square(us, 56 + file_of(square));
            forward_fill(us, bit(square)) & self.occupied == 0
                && distance(enemy, goal) - late > steps.min(5)
        };
        let passed = self.structure.passed & self.position.of(us, Kind::Pawn);
        let best = Squares(passed).filter(free).map(|s| relative_rank(us, s) as Score).max();
        let bonus = if self.position.has_pieces(!us) {
            VALUE_KING_CANNOT_CATCH_PAWN_PIECES_REMAIN
        } else {
            VALUE_KING_CANNOT_CATCH_PAWN
        };
        best.map_or(0, |rank| bonus * (rank + 3) / 8)
    }

    /// Drives a lone king to the edge.
    fn mop_up(&self) -> Score {
        let bare = |color: Color| !has_several(self.position.colors[color as usize]);
        let (white, black) = (self.position.king(Color::White), self.position.king(Color::Black));
        let closeness = 4 * (7 - distance(white, black));
        match (bare(Color::White), bare(Color::Black)) {
            (false, true) => 20 * edge_distance_bonus(black) + closeness,
            (true, false) => -20 * edge_distance_bonus(white) - closeness,
            _ => 0,
        }
    }

    /// How much of the score can be won, in 64ths.
    fn endgame_scale(&self, score: Score) -> Score {
        let strong = if score >= 0 { Color::White } else { Color::Black };
        let pawns = count(self.position.of(strong, Kind::Pawn));
        let ahead = self.piece_points(strong) - self.piece_points(!strong);
        if pawns == 0 && ahead <= 3 {
            return if self.piece_points(strong) <= 3 { 2 } else { 12 };
        }
        if self.opposite_bishops() {
            return 28 + 4 * pawns.min(5);
        }
        64
    }

    /// Material without pawns by the old count of 3, 3, 5 and 9.
    fn piece_points(&self, color: Color) -> Score {
        const POINTS: [Score; 6] = [0, 3, 3, 5, 9, 0];
        KINDS.iter().map(|&kind| POINTS[kind as usize] * count(self.position.of(color, kind))).sum()
    }

    /// Each side has one bishop, of unlike colours, and no other piece.
    fn opposite_bishops(&self) -> bool {
        let bishops = self.position.kinds[Kind::Bishop as usize];
        let one_each =
            |color| self.piece_points(color) == 3 && self.position.of(color, Kind::Bishop) != 0;
        one_each(Color::White)
            && one_each(Color::Black)
            && bishops & LIGHT_SQUARES != 0
            && bishops & !LIGHT_SQUARES != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::POSITIONS;

    fn score(position: &Position) -> Score {
        evaluate(position, &mut PawnTable::new())
    }

    #[test]
    fn colours_exchanged_the_score_is_the_same() {
        for fen in POSITIONS {
            let position = Position::from_fen(fen).unwrap();
            assert_eq!(score(&position), score(&position.mirrored()), "{fen}");
        }
    }

    #[test]
    fn the_first_move_is_worth_the_tempo() {
        assert_eq!(score(&Position::start()), TEMPO_BONUS);
    }

    #[test]
    fn a_queen_more_is_a_lot_and_dead_positions_are_drawn() {
        let up = Position::from_fen("4k3/pppppppp/8/8/8/8/PPPPPPPP/3QK3 w - - 0 1").unwrap();
        assert!(score(&up) > 1500);
        let dead = Position::from_fen("4k3/8/8/8/8/8/8/3NK3 w - - 0 1").unwrap();
        assert_eq!(score(&dead), 0);
    }

    #[test]
    fn evaluation_does_not_depend_on_the_history_of_the_pawn_table() {
        let mut table = PawnTable::new();
        for fen in POSITIONS.iter().chain(POSITIONS.iter()) {
            let position = Position::from_fen(fen).unwrap();
            assert_eq!(evaluate(&position, &mut table), score(&position));
        }
    }
}

-- How games are counted, on SQLite. counting.postgresql.sql does the same for PostgreSQL.
--
-- A batch counts while it is `done`; any other batch has no games (a CHECK of the table). After every
-- change of a batch the trigger below adds the difference to its iteration, in the same transaction.
-- Nothing else changes the counts of an iteration.

DROP TRIGGER IF EXISTS spsa_count;
CREATE TRIGGER spsa_count
    AFTER UPDATE OF plus_wins, minus_wins, draws,
                    ptnml_0, ptnml_1, ptnml_2, ptnml_3, ptnml_4, void_games
    ON spsa_batch FOR EACH ROW
BEGIN
    -- games are added only while the iteration is in progress; a purge may subtract them later
    SELECT RAISE(ABORT, 'an iteration that is not being played takes no results')
     WHERE NEW.plus_wins + NEW.minus_wins + NEW.draws > OLD.plus_wins + OLD.minus_wins + OLD.draws
       AND (SELECT status FROM spsa_iteration WHERE id = NEW.iteration_id) <> 'in_progress';
    UPDATE spsa_iteration
       SET games_played = games_played + (NEW.plus_wins + NEW.minus_wins + NEW.draws)
                                       - (OLD.plus_wins + OLD.minus_wins + OLD.draws),
           plus_wins  = plus_wins  + NEW.plus_wins  - OLD.plus_wins,
           minus_wins = minus_wins + NEW.minus_wins - OLD.minus_wins,
           draws      = draws      + NEW.draws      - OLD.draws,
           ptnml_0    = ptnml_0    + NEW.ptnml_0    - OLD.ptnml_0,
           ptnml_1    = ptnml_1    + NEW.ptnml_1    - OLD.ptnml_1,
           ptnml_2    = ptnml_2    + NEW.ptnml_2    - OLD.ptnml_2,
           ptnml_3    = ptnml_3    + NEW.ptnml_3    - OLD.ptnml_3,
           ptnml_4    = ptnml_4    + NEW.ptnml_4    - OLD.ptnml_4,
           void_games = void_games + NEW.void_games - OLD.void_games,
           struck_games = struck_games + CASE WHEN NEW.status = 'purged' THEN OLD.games ELSE 0 END
     WHERE id = NEW.iteration_id;
END;

-- A safeguard against defects: a change after which the counts of an iteration are not the sums over
-- its batches is refused.

DROP TRIGGER IF EXISTS spsa_check_counts;
CREATE TRIGGER spsa_check_counts
    AFTER UPDATE OF status, games_played, plus_wins, minus_wins, draws,
                    ptnml_0, ptnml_1, ptnml_2, ptnml_3, ptnml_4, void_games, struck_games
    ON spsa_iteration FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'an iteration does not have the sums of its batches')
     WHERE EXISTS (SELECT 1 FROM spsa_miscounted WHERE iteration_id = NEW.id);
END;

-- A batch begins without games, and one that counts is not deleted: both would change the sums behind the
-- triggers above.

DROP TRIGGER IF EXISTS spsa_insert_batch;
CREATE TRIGGER spsa_insert_batch BEFORE INSERT ON spsa_batch
    WHEN NEW.plus_wins + NEW.minus_wins + NEW.draws + NEW.void_games > 0
BEGIN
    SELECT RAISE(ABORT, 'a batch whose games count is neither inserted nor deleted');
END;

DROP TRIGGER IF EXISTS spsa_delete_batch;
CREATE TRIGGER spsa_delete_batch BEFORE DELETE ON spsa_batch
    WHEN OLD.plus_wins + OLD.minus_wins + OLD.draws + OLD.void_games > 0
BEGIN
    SELECT RAISE(ABORT, 'a batch whose games count is neither inserted nor deleted');
END;

-- How games are counted, on PostgreSQL. counting.sqlite.sql does the same for SQLite.
--
-- A batch counts while it is `done`; any other batch has no games. That is the CHECK `counts` of spsa_batch:
--   CASE WHEN status = 'done'
--        THEN claim_id IS NOT NULL AND plus_wins + minus_wins + draws = games
--             AND 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) = games
--             AND plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1)
--        ELSE all eight are 0 END, and none is negative.
-- After every change of a batch the trigger below adds the difference to its iteration, in the same transaction.
-- Nothing else changes the counts of an iteration.

CREATE OR REPLACE FUNCTION spsa_count() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    games_added INTEGER := (NEW.plus_wins + NEW.minus_wins + NEW.draws)
                         - (OLD.plus_wins + OLD.minus_wins + OLD.draws);
BEGIN
    UPDATE spsa_iteration
       SET games_played = games_played + games_added,
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
     WHERE id = NEW.iteration_id
       -- games are added only while the iteration is in progress; a purge may subtract them later
       AND (status = 'in_progress' OR games_added <= 0);
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'iteration row ' || NEW.iteration_id || ' takes no more results';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS spsa_count ON spsa_batch;
CREATE TRIGGER spsa_count
    AFTER UPDATE OF plus_wins, minus_wins, draws,
                    ptnml_0, ptnml_1, ptnml_2, ptnml_3, ptnml_4, void_games
    ON spsa_batch FOR EACH ROW
    EXECUTE FUNCTION spsa_count();

-- Every result updates the row of its iteration. Free space on the page and long columns stored
-- elsewhere keep that a heap-only update, which touches no index.
ALTER TABLE spsa_iteration SET (fillfactor = 50, toast_tuple_target = 512);

-- A safeguard against defects: a transaction after which the counts of an iteration are not the sums
-- over its batches is refused when it commits. Adding up all batches takes time, so of the reports of
-- an iteration only the last one is compared, before its games can move theta; so is every other
-- change, and every change by hand (pg_trigger_depth() is then 0). Both functions run with the rights
-- of the owner, because a worker's login may not read the tables.

CREATE OR REPLACE FUNCTION spsa_check_counts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM spsa_miscounted WHERE iteration_id = NEW.id;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'iteration row ' || NEW.id || ' does not have the sums of its batches';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS spsa_check_counts ON spsa_iteration;
CREATE CONSTRAINT TRIGGER spsa_check_counts
    AFTER UPDATE OF status, games_played, plus_wins, minus_wins, draws,
                    ptnml_0, ptnml_1, ptnml_2, ptnml_3, ptnml_4, void_games, struck_games
    ON spsa_iteration DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 OR NEW.games_played <= OLD.games_played
          OR NEW.games_played + NEW.struck_games >= NEW.target_games)
    EXECUTE FUNCTION spsa_check_counts();

-- A batch begins without games, and one that counts is not deleted: both would change the sums behind the
-- triggers above.

CREATE OR REPLACE FUNCTION spsa_refuse_batch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
        MESSAGE = 'a batch whose games count is neither inserted nor deleted';
END $$;

DROP TRIGGER IF EXISTS spsa_insert_batch ON spsa_batch;
CREATE TRIGGER spsa_insert_batch BEFORE INSERT ON spsa_batch FOR EACH ROW
    WHEN (NEW.plus_wins + NEW.minus_wins + NEW.draws + NEW.void_games > 0)
    EXECUTE FUNCTION spsa_refuse_batch();

DROP TRIGGER IF EXISTS spsa_delete_batch ON spsa_batch;
CREATE TRIGGER spsa_delete_batch BEFORE DELETE ON spsa_batch FOR EACH ROW
    WHEN (OLD.plus_wins + OLD.minus_wins + OLD.draws + OLD.void_games > 0)
    EXECUTE FUNCTION spsa_refuse_batch();

REVOKE ALL ON FUNCTION spsa_count(), spsa_check_counts(), spsa_refuse_batch() FROM PUBLIC;

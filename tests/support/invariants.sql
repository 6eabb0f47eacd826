-- the counts of an iteration are the sums over its done batches
SELECT i.id FROM spsa_iteration i LEFT JOIN (
    SELECT iteration_id,
           SUM(plus_wins) AS plus_wins, SUM(minus_wins) AS minus_wins, SUM(draws) AS draws,
           SUM(ptnml_0) AS ptnml_0, SUM(ptnml_1) AS ptnml_1, SUM(ptnml_2) AS ptnml_2,
           SUM(ptnml_3) AS ptnml_3, SUM(ptnml_4) AS ptnml_4
      FROM spsa_batch WHERE status = 'done' GROUP BY iteration_id) b ON b.iteration_id = i.id
 WHERE i.plus_wins <> COALESCE(b.plus_wins, 0)
    OR i.minus_wins <> COALESCE(b.minus_wins, 0)
    OR i.draws <> COALESCE(b.draws, 0)
    OR i.ptnml_0 <> COALESCE(b.ptnml_0, 0)
    OR i.ptnml_1 <> COALESCE(b.ptnml_1, 0)
    OR i.ptnml_2 <> COALESCE(b.ptnml_2, 0)
    OR i.ptnml_3 <> COALESCE(b.ptnml_3, 0)
    OR i.ptnml_4 <> COALESCE(b.ptnml_4, 0)

-- the batches of an iteration are its target
SELECT i.id FROM spsa_iteration i JOIN spsa_batch b ON b.iteration_id = i.id
 WHERE b.id IN (SELECT MAX(id) FROM spsa_batch GROUP BY iteration_id, seq)
 GROUP BY i.id, i.target_games HAVING SUM(b.games) <> i.target_games

-- what an iteration lost for good are its purged batches
SELECT i.id FROM spsa_iteration i
 WHERE i.purged_games <> (SELECT COALESCE(SUM(b.games), 0) FROM spsa_batch b
                           WHERE b.iteration_id = i.id AND b.status = 'purged'
                             AND b.id IN (SELECT MAX(id) FROM spsa_batch
                                           GROUP BY iteration_id, seq))

-- a purge says how much it removed
SELECT p.id FROM spsa_purge p
 WHERE p.games <> (SELECT COALESCE(SUM(b.games), 0) FROM spsa_batch b
                     JOIN spsa_iteration i ON i.id = b.iteration_id
                    WHERE i.run_id = p.run_id AND b.purge = p.number)

-- a run knows its purges
SELECT r.id FROM spsa_run r
 WHERE r.purges <> (SELECT COUNT(*) FROM spsa_purge p WHERE p.run_id = r.id)
    OR r.purges <> (SELECT COALESCE(MAX(number), 0) FROM spsa_purge p
                     WHERE p.run_id = r.id)

-- voids are counted alike
SELECT i.id FROM spsa_iteration i JOIN spsa_batch b ON b.iteration_id = i.id
 GROUP BY i.id, i.void_games
HAVING SUM(CASE WHEN b.status = 'purged' THEN 0 ELSE b.void_games END) <> i.void_games

-- a complete iteration has its games, and one step if it tunes
SELECT i.id FROM spsa_iteration i LEFT JOIN spsa_step s ON s.iteration_id = i.id
 WHERE (i.status = 'complete') <> (i.completed_at IS NOT NULL)
    OR (i.status = 'complete' AND i.games_played + i.purged_games <> i.target_games)
    OR (i.status = 'complete' AND i.purpose = 'tune') <> (s.id IS NOT NULL)

-- a step is of the k and the run of its iteration, and of a master that its run has had
SELECT s.id FROM spsa_step s JOIN spsa_iteration i ON i.id = s.iteration_id
 WHERE s.k <> i.k OR s.run_id <> i.run_id
    OR s.epoch > (SELECT r.epoch FROM spsa_run r WHERE r.id = s.run_id)

-- a run has applied as many results as its log has steps
SELECT r.id FROM spsa_run r
 WHERE r.applied <> (SELECT COUNT(*) FROM spsa_step s WHERE s.run_id = r.id)
    OR r.applied <> (SELECT COALESCE(MAX(k), 0) FROM spsa_step s WHERE s.run_id = r.id)

-- numbers have no gaps
SELECT run_id FROM spsa_iteration
 GROUP BY run_id HAVING MAX(iteration_number) <> COUNT(*) OR MIN(iteration_number) <> 1

-- a leased batch has a holder, a free one has neither holder nor lease
SELECT id FROM spsa_batch
 WHERE (status = 'leased') <> (claim_id IS NOT NULL AND status NOT IN ('done', 'purged'))
    OR (status NOT IN ('leased', 'done') AND lease_expires_at IS NOT NULL)

-- a batch is not tried by more machines than allowed, and by two in any case
SELECT b.id FROM spsa_batch b JOIN spsa_failure f ON f.batch_id = b.id
 GROUP BY b.id, b.max_attempts HAVING COUNT(*) > b.max_attempts AND COUNT(*) > 2

-- epochs do not go back
SELECT a.id FROM spsa_step a JOIN spsa_step b ON a.run_id = b.run_id AND a.k < b.k
 WHERE a.epoch > b.epoch

-- a run that ended has nothing open to tune
SELECT i.id FROM spsa_iteration i JOIN spsa_run r ON r.id = i.run_id
 WHERE r.status IN ('finished', 'stopped') AND i.purpose = 'tune'
   AND i.status IN ('pending', 'in_progress')

-- two batches of a run have two seeds
SELECT i.run_id FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id
 WHERE b.status <> 'purged' GROUP BY i.run_id, b.seed HAVING COUNT(*) > 1

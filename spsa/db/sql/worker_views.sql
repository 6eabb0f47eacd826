-- The views behind claims and counts. They hold the ids of claims, so viewers may not read them.

-- name: spsa_open
-- the open iterations, and whether their batches may be claimed; a validation is played after its run
-- has ended
SELECT i.id, i.status, i.run_id, i.requires, i.variants, i.plus_sha256, i.minus_sha256,
       r.name AS run, r.priority, r.share,
       (r.status = 'running'
        OR (i.purpose = 'validate' AND r.status IN ('finished', 'stopped'))) AS playable
  FROM spsa_iteration i JOIN spsa_run r ON r.id = i.run_id
 WHERE i.status IN ('pending', 'in_progress');

-- name: spsa_suited
-- the workers that may play an open iteration: they provide all words that it requires, which are a
-- pattern for the words in order, or those of its binaries for another kind of machine; they take its run, named by a key of an object, which both databases
-- read; and their machine is not set aside
SELECT o.id AS iteration_id, o.run_id, o.priority, o.share, o.playable,
       w.id AS worker_id, w.host AS machine, w.last_seen_at
  FROM spsa_open o CROSS JOIN spsa_worker w
 WHERE (o.requires IS NULL OR w.provides LIKE o.requires
        OR EXISTS (SELECT 1 FROM json_each(o.variants) AS v WHERE w.provides LIKE v.key))
   AND (w.only_runs IS NULL
        OR EXISTS (SELECT 1 FROM json_each(w.only_runs) AS n WHERE n.key = o.run))
   AND (w.not_runs IS NULL
        OR NOT EXISTS (SELECT 1 FROM json_each(w.not_runs) AS n WHERE n.key = o.run))
   AND NOT EXISTS (SELECT 1 FROM spsa_set_aside a WHERE a.machine = w.host
                      AND (a.sha256 IS NULL OR a.sha256 IN (o.plus_sha256, o.minus_sha256)));

-- name: spsa_miscounted
-- an iteration whose counts are not the sums over its batches; there must be none
SELECT i.id AS iteration_id
  FROM spsa_iteration i LEFT JOIN spsa_batch b ON b.iteration_id = i.id
 GROUP BY i.id
HAVING i.games_played <> COALESCE(SUM(b.plus_wins + b.minus_wins + b.draws), 0)
    OR i.plus_wins <> COALESCE(SUM(b.plus_wins), 0)
    OR i.minus_wins <> COALESCE(SUM(b.minus_wins), 0)
    OR i.draws <> COALESCE(SUM(b.draws), 0)
    OR i.ptnml_0 <> COALESCE(SUM(b.ptnml_0), 0)
    OR i.ptnml_1 <> COALESCE(SUM(b.ptnml_1), 0)
    OR i.ptnml_2 <> COALESCE(SUM(b.ptnml_2), 0)
    OR i.ptnml_3 <> COALESCE(SUM(b.ptnml_3), 0)
    OR i.ptnml_4 <> COALESCE(SUM(b.ptnml_4), 0)
    OR i.void_games <> COALESCE(SUM(b.void_games), 0)
    OR i.struck_games <> COALESCE(SUM(CASE WHEN b.status = 'purged' THEN b.games ELSE 0 END), 0);

-- name: spsa_claimed
-- all that a worker needs to play a batch
SELECT b.claim_id, b.status, b.id, b.seq, b.attempt, b.first_pair, b.games, b.seed,
       i.id AS iteration_id, i.iteration_number, i.purpose, i.signature, i.terms,
       i.plus_sha256, i.plus_engine_path, i.plus_options,
       i.minus_sha256, i.minus_engine_path, i.minus_options, i.variants,
       r.id AS run_id, r.name AS run_name, r.seed AS run_seed
  FROM spsa_batch b
  JOIN spsa_iteration i ON i.id = b.iteration_id
  JOIN spsa_run r ON r.id = i.run_id;

-- The queries of a worker on a PostgreSQL server. worker_statements.sql has the same for SQLite, under
-- the same names. How games are counted is in counting.postgresql.sql.
--
-- Part 1 is what workers call, part 2 what those call that build engines for others. Each function is
-- one call, one round trip and one transaction. It runs with the rights of the owner of the tables, so a
-- worker's login needs EXECUTE on these functions and nothing else. Part 3 is what those functions call.
--
-- The login (session_user) and the secret of the machine identify the caller. The worker chooses the
-- id of a claim before it asks. The id gives the right to the batch: a caller needs it to renew,
-- report, release or fail the batch, and a repeated call changes nothing.
--
-- No call waits for the disk: a claim or a report that is lost in a crash of the server is claimed or
-- played again, never counted twice. set_config(..., true) holds for this transaction only, and
-- therefore works behind a connection pooler too.

-- Part 1: what workers call

-- Registers a worker: returns its id and the name of its machine. The name of a worker belongs to one
-- machine; if it belongs to another one, or is the name of another one, the id is NULL and the machine is
-- that other one.
CREATE OR REPLACE FUNCTION spsa_register_worker(
    p_name TEXT, p_secret TEXT, p_host TEXT, p_platform TEXT, p_cores INTEGER,
    p_concurrency INTEGER, p_version TEXT, p_confinement TEXT,
    p_provides TEXT, p_only_runs JSON, p_not_runs JSON,
    OUT worker_id BIGINT, OUT machine TEXT
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    -- never NULL: that would be the machine of every worker with this login
    v_hash TEXT := encode(sha256(convert_to(coalesce(p_secret, ''), 'UTF8')), 'hex');
    -- only a builder's login builds: a master waits for the machines that say they do
    v_provides TEXT := CASE
        WHEN has_function_privilege(session_user, 'spsa_renew_build(text, double precision)', 'EXECUTE')
        THEN p_provides ELSE replace(p_provides, ' builds ', '') END;
    v_longer TEXT := p_host || '-'
        || left(encode(sha256(convert_to(session_user || v_hash, 'UTF8')), 'hex'), 8);
BEGIN
    PERFORM spsa_check_text('name', p_name), spsa_check_text('host', p_host),
            spsa_check_text('platform', p_platform), spsa_check_text('version', p_version),
            spsa_check_text('confinement', p_confinement), spsa_check_text('provides', p_provides);
    PERFORM spsa_check_text('the name of a run', name)
       FROM (SELECT json_object_keys(p_only_runs) AS name
              UNION ALL SELECT json_object_keys(p_not_runs)) AS listed;
    IF NOT EXISTS (SELECT FROM spsa_worker WHERE name = p_name) THEN
        PERFORM spsa_check_registrations();
    END IF;
    machine := spsa_own_machine(v_hash);
    IF machine IS NULL THEN  -- a new machine; if its name is taken, it gets a longer one
        INSERT INTO spsa_machine (name, login, secret_sha256)
            VALUES (p_host, session_user, v_hash) ON CONFLICT DO NOTHING;
        INSERT INTO spsa_machine (name, login, secret_sha256)
            VALUES (v_longer, session_user, v_hash) ON CONFLICT DO NOTHING;
        machine := spsa_own_machine(v_hash);
    END IF;
    IF EXISTS (SELECT FROM spsa_machine m WHERE m.name = p_name AND m.name <> machine) THEN
        machine := p_name;
        RETURN;
    END IF;
    INSERT INTO spsa_worker AS w (name, host, platform, cores, concurrency, version, confinement,
                                  provides, only_runs, not_runs)
        VALUES (p_name, machine, p_platform, p_cores, p_concurrency, p_version, p_confinement,
                v_provides, p_only_runs, p_not_runs)
        ON CONFLICT (name) DO UPDATE
            SET platform = EXCLUDED.platform, cores = EXCLUDED.cores,
                concurrency = EXCLUDED.concurrency, version = EXCLUDED.version,
                confinement = EXCLUDED.confinement, provides = EXCLUDED.provides,
                only_runs = EXCLUDED.only_runs, not_runs = EXCLUDED.not_runs,
                last_seen_at = statement_timestamp()
            WHERE w.host = EXCLUDED.host
        RETURNING w.id INTO worker_id;
    IF worker_id IS NULL THEN
        SELECT w.host INTO machine FROM spsa_worker w WHERE w.name = p_name;
    END IF;
END $$;

-- Records that a worker is alive. Without a speed or a scale the last one stays. Returns why its
-- machine gets no batches, or NULL.
CREATE OR REPLACE FUNCTION spsa_touch_worker(
    p_worker_id BIGINT, p_secret TEXT, p_nps DOUBLE PRECISION, p_scale DOUBLE PRECISION
) RETURNS TEXT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    v_machine TEXT := spsa_machine_of(p_worker_id, p_secret);
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE spsa_worker
       SET last_seen_at = statement_timestamp(), nps = coalesce(p_nps, nps),
           scale = coalesce(p_scale, scale)
     WHERE id = p_worker_id AND v_machine IS NOT NULL;
    RETURN (SELECT min(reason) FROM spsa_set_aside
             WHERE machine = v_machine AND sha256 IS NULL);
END $$;

-- Leases one free batch to a claim, and returns all that is needed to play it; no row if none is free.
-- For a claim that already has a batch, or has reported it, it returns that one.
CREATE OR REPLACE FUNCTION spsa_claim(
    p_worker_id BIGINT, p_secret TEXT, p_claim_id TEXT, p_draw DOUBLE PRECISION,
    p_lease_seconds DOUBLE PRECISION
) RETURNS SETOF spsa_claimed
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    v_machine TEXT := spsa_machine_of(p_worker_id, p_secret);
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM spsa_check_range('lease_seconds', p_lease_seconds, 0, 3600);
    IF v_machine IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
            MESSAGE = format('worker %s is not registered by this machine', p_worker_id);
    END IF;
    PERFORM spsa_check_text('claim_id', p_claim_id);
    IF NOT EXISTS (SELECT FROM spsa_batch WHERE claim_id = p_claim_id) THEN
        PERFORM spsa_lease_batch(p_worker_id, v_machine, p_claim_id, p_draw, p_lease_seconds);
    END IF;
    RETURN QUERY SELECT * FROM spsa_claimed WHERE claim_id = p_claim_id;
END $$;

-- Renews the leases of these claims; returns those that are still held. A missing claim is lost: another
-- one has its batch, its iteration is over, or it has had the batch for a week.
CREATE OR REPLACE FUNCTION spsa_renew(p_claim_ids TEXT[], p_lease_seconds DOUBLE PRECISION)
RETURNS SETOF TEXT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM spsa_check_range('lease_seconds', p_lease_seconds, 0, 3600);
    PERFORM spsa_check_range('leases renewed at once', cardinality(p_claim_ids), 0, 10000);
    RETURN QUERY
        UPDATE spsa_batch b
           SET lease_expires_at = statement_timestamp() + make_interval(secs => p_lease_seconds)
         WHERE b.claim_id = ANY (p_claim_ids) AND b.status = 'leased'
           AND b.leased_at > statement_timestamp() - interval '7 days'
           AND EXISTS (SELECT 1 FROM spsa_iteration i
                        WHERE i.id = b.iteration_id AND i.status = 'in_progress')
        RETURNING b.claim_id;
END $$;

-- Reports the result of a batch. The trigger spsa_count adds it to the iteration. Returns
--   accepted  the result counts now
--   already   this claim has already reported the same counts: they count once
--   conflict  this claim has already reported other counts: those count
--   lost      the batch is not this claim's, or its iteration was abandoned: nothing counts
-- A report after the lease has expired still counts, unless another claim has the batch.
CREATE OR REPLACE FUNCTION spsa_report(
    p_batch_id BIGINT, p_claim_id TEXT,
    p_plus_wins INTEGER, p_minus_wins INTEGER, p_draws INTEGER,
    p_ptnml_0 INTEGER, p_ptnml_1 INTEGER, p_ptnml_2 INTEGER, p_ptnml_3 INTEGER, p_ptnml_4 INTEGER,
    p_void_games BIGINT, p_voids JSON, p_plus_nodes BIGINT, p_minus_nodes BIGINT, p_moves BIGINT,
    p_plus_time_losses INTEGER, p_minus_time_losses INTEGER,
    p_seconds DOUBLE PRECISION, p_think_seconds DOUBLE PRECISION, p_slot INTEGER,
    p_scale DOUBLE PRECISION, p_void_log JSON DEFAULT NULL::JSON
) RETURNS TEXT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    v_same BOOLEAN;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM spsa_check_voids(p_void_games, p_voids);
    UPDATE spsa_batch b
       SET status = 'done', reported_at = statement_timestamp(),
           plus_wins = p_plus_wins, minus_wins = p_minus_wins, draws = p_draws,
           ptnml_0 = p_ptnml_0, ptnml_1 = p_ptnml_1, ptnml_2 = p_ptnml_2,
           ptnml_3 = p_ptnml_3, ptnml_4 = p_ptnml_4,
           void_games = void_games + least(p_void_games, 1000000 - void_games), voids = p_voids,
           void_log = coalesce(p_void_log, void_log),
           void_worker_id = CASE WHEN p_void_log IS NULL THEN void_worker_id ELSE worker_id END,
           plus_nodes = p_plus_nodes, minus_nodes = p_minus_nodes, moves = p_moves,
           plus_time_losses = p_plus_time_losses, minus_time_losses = p_minus_time_losses,
           seconds = p_seconds, think_seconds = p_think_seconds, slot = p_slot,
           scale = p_scale
     WHERE b.id = p_batch_id AND b.claim_id = p_claim_id AND b.status = 'leased'
       AND EXISTS (SELECT 1 FROM spsa_iteration i
                    WHERE i.id = b.iteration_id AND i.status = 'in_progress');
    IF FOUND THEN
        RETURN 'accepted';
    END IF;

    SELECT (plus_wins, minus_wins, draws, ptnml_0, ptnml_1, ptnml_2, ptnml_3, ptnml_4)
         = (p_plus_wins, p_minus_wins, p_draws,
            p_ptnml_0, p_ptnml_1, p_ptnml_2, p_ptnml_3, p_ptnml_4)
      INTO v_same FROM spsa_batch
     WHERE id = p_batch_id AND claim_id = p_claim_id AND status = 'done';
    RETURN CASE WHEN NOT FOUND THEN 'lost' WHEN v_same THEN 'already' ELSE 'conflict' END;
END $$;

-- Returns a batch unplayed; the attempt does not count.
CREATE OR REPLACE FUNCTION spsa_release(p_batch_id BIGINT, p_claim_id TEXT) RETURNS VOID
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE spsa_batch
       SET status = 'ready', attempt = attempt - 1, claim_id = NULL, lease_expires_at = NULL
     WHERE id = p_batch_id AND claim_id = p_claim_id AND status = 'leased';
END $$;

-- Returns a batch that this machine cannot play, and adds its void games to those of its worker. Other
-- machines may try it; the run's master decides when a batch, or a machine, has failed often enough.
CREATE OR REPLACE FUNCTION spsa_fail(
    p_batch_id BIGINT, p_claim_id TEXT, p_sha256 TEXT, p_reason TEXT, p_void_games BIGINT,
    p_void_log JSON DEFAULT NULL::JSON
) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    v_worker_id BIGINT;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM spsa_check_range('void_games', p_void_games, 0, 1000000);
    PERFORM spsa_check_text('reason', p_reason);
    UPDATE spsa_batch
       SET status = 'ready', claim_id = NULL, lease_expires_at = NULL, last_error = p_reason,
           void_games = void_games + least(p_void_games, 1000000 - void_games),
           void_log = coalesce(p_void_log, void_log),
           void_worker_id = CASE WHEN p_void_log IS NULL THEN void_worker_id ELSE worker_id END
     WHERE id = p_batch_id AND claim_id = p_claim_id AND status = 'leased'
    RETURNING worker_id INTO v_worker_id;
    IF FOUND THEN  -- without a reason it would be noted as an expired lease
        PERFORM spsa_note_failure(p_batch_id, v_worker_id, p_sha256, coalesce(p_reason, ''));
        UPDATE spsa_worker SET failed_void_games = failed_void_games + p_void_games
         WHERE id = v_worker_id;
    END IF;
END $$;

-- The bytes of a binary, a book or a side file in the database; NULL if it does not hold them.
CREATE OR REPLACE FUNCTION spsa_engine_bytes(p_sha256 TEXT) RETURNS BYTEA
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT bytes FROM spsa_engine WHERE sha256 = p_sha256
    UNION ALL
    SELECT bytes FROM spsa_file WHERE sha256 = p_sha256
$$;

-- The runs that may still need games, even if no batch is free now, with what their open iterations
-- require. A finished run whose master lease is live may still open a validation.
CREATE OR REPLACE FUNCTION spsa_work_left() RETURNS TABLE (run TEXT, requires TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT DISTINCT r.name, o.requires
      FROM spsa_run r LEFT JOIN spsa_open o ON o.run_id = r.id AND o.playable
     WHERE r.status = 'running' OR o.id IS NOT NULL
        OR (r.status = 'finished' AND r.lease_expires_at > statement_timestamp())
     UNION  -- binaries for other kinds of machines
    SELECT o.run, v.key FROM spsa_open o CROSS JOIN json_each(o.variants) AS v
     WHERE o.playable AND v.key LIKE '% %'
$$;

-- Part 2: what workers call that build engines for others

-- Leases two engines to build to a claim: its id, what to do, and the hash of the archive of the source;
-- no row if none is wanted of this worker. For a claim that already has some, it returns these.
CREATE OR REPLACE FUNCTION spsa_claim_build(
    p_worker_id BIGINT, p_secret TEXT, p_claim_id TEXT, p_lease_seconds DOUBLE PRECISION
) RETURNS TABLE (build_id BIGINT, order_json JSON, archive TEXT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    v_machine TEXT := spsa_machine_of(p_worker_id, p_secret);
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM spsa_check_range('lease_seconds', p_lease_seconds, 0, 3600);
    IF v_machine IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
            MESSAGE = format('worker %s is not registered by this machine', p_worker_id);
    END IF;
    IF NOT EXISTS (SELECT FROM spsa_build b WHERE b.claim_id = p_claim_id) THEN
        UPDATE spsa_build AS leased
           SET status = 'leased', attempt = leased.attempt + 1, claim_id = p_claim_id,
               worker_id = p_worker_id, leased_at = statement_timestamp(),
               lease_expires_at = statement_timestamp() + make_interval(secs => p_lease_seconds)
         WHERE leased.id = (
            SELECT b.id FROM spsa_build b JOIN spsa_worker w ON w.id = p_worker_id
             WHERE (b.status = 'ready'
                    OR b.status = 'leased' AND b.lease_expires_at < statement_timestamp())
               AND b.wanted_until > statement_timestamp() AND b.attempt < b.max_attempts
               AND w.provides LIKE b.requires
               AND NOT EXISTS (SELECT FROM spsa_build_failure f
                                WHERE f.build_id = b.id AND f.machine = v_machine)
               AND NOT EXISTS (SELECT FROM spsa_set_aside a
                                WHERE a.machine = v_machine AND a.sha256 IS NULL)
             ORDER BY b.id LIMIT 1 FOR UPDATE OF b SKIP LOCKED);
    END IF;
    RETURN QUERY SELECT b.id, b.recipe, b.archive_sha256 FROM spsa_build b
                  WHERE b.claim_id = p_claim_id AND b.status = 'leased';
END $$;

-- Renews the lease of a build; returns whether this claim still has it and a master still wants it.
CREATE OR REPLACE FUNCTION spsa_renew_build(p_claim_id TEXT, p_lease_seconds DOUBLE PRECISION)
RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM spsa_check_range('lease_seconds', p_lease_seconds, 0, 3600);
    UPDATE spsa_build
       SET lease_expires_at = statement_timestamp() + make_interval(secs => p_lease_seconds)
     WHERE claim_id = p_claim_id AND status = 'leased' AND wanted_until > statement_timestamp()
       AND leased_at > statement_timestamp() - interval '1 day';
    RETURN FOUND;
END $$;

-- Publishes the two engines of a build. The server computes their hashes. Returns
--   accepted  they are published now
--   already   this claim has already published engines; those stay
--   lost      the build is not this claim's: nothing is published
CREATE OR REPLACE FUNCTION spsa_publish_build(
    p_build_id BIGINT, p_claim_id TEXT, p_target TEXT, p_binary_requires TEXT,
    p_plus BYTEA, p_minus BYTEA, p_plus_bench BIGINT, p_minus_bench BIGINT
) RETURNS TEXT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    v_key TEXT;
    v_status TEXT;
    v_plus TEXT := encode(sha256(p_plus), 'hex');
    v_minus TEXT := encode(sha256(p_minus), 'hex');
BEGIN
    PERFORM spsa_check_text('target', p_target),
            spsa_check_text('binary_requires', p_binary_requires);
    PERFORM spsa_check_range('characters of target', length(p_target), 1, 100);
    PERFORM spsa_check_range('bytes of plus', octet_length(p_plus), 1, 268435456);
    PERFORM spsa_check_range('bytes of minus', octet_length(p_minus), 1, 268435456);
    SELECT build_key, status INTO v_key, v_status FROM spsa_build
     WHERE id = p_build_id AND claim_id = p_claim_id FOR UPDATE;
    IF v_status IS DISTINCT FROM 'leased' THEN
        RETURN CASE WHEN v_status = 'done' THEN 'already' ELSE 'lost' END;
    END IF;
    INSERT INTO spsa_engine AS e (sha256, build_key, target, size, bench, path, bytes)
        VALUES (v_plus, v_key, p_target, octet_length(p_plus), p_plus_bench, v_plus, p_plus)
        ON CONFLICT (sha256) DO UPDATE SET bytes = EXCLUDED.bytes WHERE e.bytes IS NULL;
    INSERT INTO spsa_engine AS e (sha256, build_key, target, size, bench, path, bytes)
        VALUES (v_minus, v_key, p_target, octet_length(p_minus), p_minus_bench, v_minus, p_minus)
        ON CONFLICT (sha256) DO UPDATE SET bytes = EXCLUDED.bytes WHERE e.bytes IS NULL;
    UPDATE spsa_build
       SET status = 'done', recipe = NULL, plus_sha256 = v_plus, minus_sha256 = v_minus,
           plus_bench = p_plus_bench, minus_bench = p_minus_bench,
           binary_requires = p_binary_requires
     WHERE id = p_build_id;
    RETURN 'accepted';
END $$;

-- Returns a build that this machine cannot do, with the reason: it is not asked again. Without a reason
-- it is handed back, and the attempt does not count.
CREATE OR REPLACE FUNCTION spsa_fail_build(p_build_id BIGINT, p_claim_id TEXT, p_reason TEXT)
RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    v_worker_id BIGINT;
BEGIN
    PERFORM spsa_check_text('reason', p_reason);
    UPDATE spsa_build
       SET status = 'ready', claim_id = NULL, lease_expires_at = NULL,
           attempt = attempt - (p_reason IS NULL)::INTEGER
     WHERE id = p_build_id AND claim_id = p_claim_id AND status = 'leased'
    RETURNING worker_id INTO v_worker_id;
    IF FOUND AND p_reason IS NOT NULL THEN
        INSERT INTO spsa_build_failure (build_id, machine, reason)
            SELECT p_build_id, w.host, p_reason FROM spsa_worker w WHERE w.id = v_worker_id
            ON CONFLICT (build_id, machine) DO UPDATE SET reason = EXCLUDED.reason;
    END IF;
END $$;

-- Part 3: what those functions call, with their rights and their search_path

-- The machine of the caller: that of its login, or the one with this secret.
CREATE OR REPLACE FUNCTION spsa_own_machine(p_hash TEXT) RETURNS TEXT
LANGUAGE sql AS $$
    SELECT name FROM spsa_machine
     WHERE login = session_user AND (secret_sha256 IS NULL OR secret_sha256 = p_hash)
     ORDER BY secret_sha256 NULLS FIRST LIMIT 1
$$;

-- The machine of a worker, if it is the caller's; NULL otherwise. Every claim calls this, so it is in
-- PL/pgSQL, which keeps the plan.
CREATE OR REPLACE FUNCTION spsa_machine_of(p_worker_id BIGINT, p_secret TEXT) RETURNS TEXT
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT m.name FROM spsa_worker w JOIN spsa_machine m ON m.name = w.host
         WHERE w.id = p_worker_id AND m.login = session_user
           AND (m.secret_sha256 IS NULL
                OR m.secret_sha256 = encode(sha256(convert_to(p_secret, 'UTF8')), 'hex'))
    );
END $$;

-- Refuses to register more machines and workers than a login can have started within a day. So a login
-- cannot fill the disk, and cannot have a new machine for each one that is set aside.
CREATE OR REPLACE FUNCTION spsa_check_registrations() RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM spsa_machine
         WHERE login = session_user AND created_at > statement_timestamp() - interval '1 day') >= 1000
       OR (SELECT count(*) FROM spsa_worker w JOIN spsa_machine m ON m.name = w.host
            WHERE m.login = session_user
              AND w.first_seen_at > statement_timestamp() - interval '1 day') >= 10000 THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = format(
            'the login %s has registered 1000 machines or 10000 workers within a day; '
            'it may register more when a day has passed', session_user);
    END IF;
END $$;

-- Leases a free batch to a claim, if there is one: of the run that is served next, the oldest iteration
-- and the first batch. The runs after it follow, so that no worker waits while any batch is free.
CREATE OR REPLACE FUNCTION spsa_lease_batch(
    p_worker_id BIGINT, p_machine TEXT, p_claim_id TEXT, p_draw DOUBLE PRECISION,
    p_lease_seconds DOUBLE PRECISION
) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    v_run BIGINT; v_iteration BIGINT; v_batch BIGINT; v_expired_worker BIGINT;
BEGIN
    IF (SELECT min(run_id) < max(run_id) FROM spsa_open WHERE playable) THEN
        v_run := spsa_next_run(p_worker_id, p_draw);
    END IF;
    FOR v_iteration IN
        SELECT s.iteration_id FROM spsa_suited s WHERE s.worker_id = p_worker_id AND s.playable
         ORDER BY s.priority DESC, s.run_id IS DISTINCT FROM v_run, s.iteration_id  -- v_run first
    LOOP
        -- Expired leases first, because an iteration waits for them. Two statements, because each has
        -- its own index. A locked row is being claimed, renewed or reported. A SELECT INTO that finds
        -- nothing sets its variables to NULL.
        SELECT b.id, b.worker_id INTO v_batch, v_expired_worker FROM spsa_batch b
         WHERE b.iteration_id = v_iteration
           AND b.status = 'leased' AND b.lease_expires_at < statement_timestamp()
           AND spsa_may_retry(b.id, p_machine)
         ORDER BY b.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN FOUND;
        SELECT b.id INTO v_batch FROM spsa_batch b
         WHERE b.iteration_id = v_iteration AND b.status = 'ready'
           AND (b.failures = 0 OR spsa_may_retry(b.id, p_machine))
         ORDER BY b.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN FOUND;
    END LOOP;
    IF v_batch IS NULL THEN
        RETURN;
    END IF;

    IF v_expired_worker IS NOT NULL THEN
        PERFORM spsa_note_failure(v_batch, v_expired_worker, NULL, NULL);
    END IF;
    UPDATE spsa_batch
       SET status = 'leased', attempt = attempt + 1, claim_id = p_claim_id, worker_id = p_worker_id,
           leased_at = statement_timestamp(),
           lease_expires_at = statement_timestamp() + make_interval(secs => p_lease_seconds)
     WHERE id = v_batch;
    UPDATE spsa_iteration SET status = 'in_progress' WHERE id = v_iteration AND status = 'pending';
END $$;

-- The run that is served next if several have free batches for this worker: one of the highest priority, drawn at
-- random (0 <= p_draw < 1). A run is entitled to its share of all slots in use; its deficit is its
-- weight in the draw, so that no run starves if there are fewer slots than runs.
CREATE OR REPLACE FUNCTION spsa_next_run(p_worker_id BIGINT, p_draw DOUBLE PRECISION)
RETURNS BIGINT LANGUAGE sql STABLE AS $$
    WITH waiting AS (
        SELECT DISTINCT s.run_id, s.priority, s.share FROM spsa_suited s
         WHERE s.worker_id = p_worker_id AND s.playable
           AND (EXISTS (SELECT 1 FROM spsa_batch b WHERE b.iteration_id = s.iteration_id
                           AND b.status = 'ready' AND b.failures < b.max_attempts)
                OR EXISTS (SELECT 1 FROM spsa_batch b WHERE b.iteration_id = s.iteration_id
                              AND b.status = 'leased'
                              AND b.lease_expires_at < statement_timestamp()
                              AND b.failures < b.max_attempts))
    ), candidates AS (
        SELECT w.run_id, w.share,
               (SELECT count(*) FROM spsa_iteration i JOIN spsa_batch b ON b.iteration_id = i.id
                 WHERE i.run_id = w.run_id AND i.status IN ('pending', 'in_progress')
                   AND b.status = 'leased' AND b.lease_expires_at >= statement_timestamp()
               ) AS slots
          FROM waiting w WHERE w.priority = (SELECT max(priority) FROM waiting)
    ), weighted AS (
        SELECT run_id, greatest(
                   (1 + sum(slots) OVER ()) * share / sum(share) OVER () - slots, 0) AS deficit
          FROM candidates
    ), ranges AS (
        SELECT run_id, sum(deficit) OVER (ORDER BY run_id) AS upper, sum(deficit) OVER () AS total
          FROM weighted
    )
    -- The first run whose range ends above the draw; false sorts before true.
    SELECT run_id FROM ranges ORDER BY upper <= p_draw * total, run_id LIMIT 1
$$;

-- Whether a machine may try a batch that failed before, or whose lease expired. A machine that has not
-- tried it may, as long as fewer than max_attempts machines have tried it. A machine whose lease
-- expired may try again up to max_attempts; a machine that failed it may do so only if no other
-- active machine gets such batches.
CREATE OR REPLACE FUNCTION spsa_may_retry(p_batch_id BIGINT, p_machine TEXT) RETURNS BOOLEAN
LANGUAGE sql STABLE AS $$
    SELECT (SELECT count(*) FROM (
                SELECT f.machine FROM spsa_failure f WHERE f.batch_id = b.id
                 UNION  -- the one whose lease expired
                SELECT w.host FROM spsa_worker w WHERE w.id = b.worker_id AND b.status = 'leased'
            ) AS tried) < b.max_attempts
       -- this machine has not tried it
       AND (NOT EXISTS (SELECT 1 FROM spsa_failure f
                         WHERE f.batch_id = b.id AND f.machine = p_machine)
            OR b.attempt < b.max_attempts AND (
                -- it has only lost its lease
                NOT EXISTS (SELECT 1 FROM spsa_failure f WHERE f.batch_id = b.id
                               AND f.machine = p_machine AND f.failures > 0)
                -- no other machine is there
                OR NOT EXISTS (
                    SELECT 1 FROM spsa_suited s
                     WHERE s.iteration_id = b.iteration_id AND s.machine <> p_machine
                       AND s.last_seen_at > statement_timestamp() - interval '120 seconds')))
      FROM spsa_batch b WHERE b.id = p_batch_id
$$;

-- Records that the machine of a worker has failed a batch, or, without a reason, let its lease expire.
CREATE OR REPLACE FUNCTION spsa_note_failure(
    p_batch_id BIGINT, p_worker_id BIGINT, p_sha256 TEXT, p_reason TEXT
) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO spsa_failure AS f (batch_id, machine, failures, lost_leases, sha256, reason)
        SELECT p_batch_id, w.host, (p_reason IS NOT NULL)::INTEGER, (p_reason IS NULL)::INTEGER,
               p_sha256, p_reason
          FROM spsa_worker w WHERE w.id = p_worker_id
        ON CONFLICT (batch_id, machine) DO UPDATE
            SET failures = f.failures + EXCLUDED.failures,
                lost_leases = f.lost_leases + EXCLUDED.lost_leases,
                sha256 = coalesce(EXCLUDED.sha256, f.sha256),
                reason = coalesce(EXCLUDED.reason, f.reason),
                at = statement_timestamp();
    UPDATE spsa_batch
       SET failures = (SELECT count(*) FROM spsa_failure WHERE batch_id = p_batch_id)
     WHERE id = p_batch_id;
END $$;

-- Refuses a number outside its range; NULL and NaN are outside every range.
CREATE OR REPLACE FUNCTION spsa_check_range(
    p_name TEXT, p_value DOUBLE PRECISION, p_least DOUBLE PRECISION, p_most DOUBLE PRECISION
) RETURNS VOID LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_value IS NULL OR p_value NOT BETWEEN p_least AND p_most THEN
        RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
            MESSAGE = format('%s is %s; allowed: %s to %s', p_name, p_value, p_least, p_most);
    END IF;
END $$;

-- Refuses text with line breaks, escape sequences or marks that hide or reverse text.
CREATE OR REPLACE FUNCTION spsa_check_text(p_name TEXT, p_text TEXT) RETURNS VOID
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_text ~ '[\u0001-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]' THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation',
            MESSAGE = p_name || ' has unprintable characters';
    END IF;
END $$;

-- Refuses void games whose reasons, as in {"crash": 2}, do not add up to their number.
CREATE OR REPLACE FUNCTION spsa_check_voids(p_void_games BIGINT, p_voids JSON) RETURNS VOID
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM spsa_check_range('void_games', p_void_games, 0, 1000000);
    PERFORM spsa_check_text('voids', reason) FROM json_object_keys(p_voids) AS reason;
    IF (p_void_games <> 0 OR p_voids::TEXT <> '{}') AND (
        EXISTS (SELECT FROM json_each_text(p_voids) WHERE (value ~ '^[0-9]{1,7}$') IS NOT TRUE)
        OR p_void_games <> (SELECT coalesce(sum(value::BIGINT), 0) FROM json_each_text(p_voids))
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation',
            MESSAGE = format('voids do not add up to the %s void games', p_void_games);
    END IF;
END $$;

-- Ends every session of a worker's login whose transaction has been open for more than half a minute, and
-- returns those logins. So no worker can keep a lock that a master waits for: a login may lift the limits
-- that `grant` sets for its sessions. A master calls this when it has waited too long for a lock.
CREATE OR REPLACE FUNCTION spsa_end_stalled_sessions() RETURNS SETOF TEXT
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH stalled AS MATERIALIZED (  -- first who, then the call that ends them
        SELECT a.pid, a.usename FROM pg_stat_activity a
         WHERE a.datname = current_database()
           AND a.xact_start < clock_timestamp() - interval '30 seconds'
           AND has_function_privilege(a.usename, 'spsa_work_left()', 'EXECUTE')
           AND NOT has_table_privilege(a.usename, 'spsa_batch', 'UPDATE')
    )
    SELECT usename::TEXT FROM stalled WHERE pg_terminate_backend(pid)
$$;

REVOKE ALL ON FUNCTION
    spsa_register_worker, spsa_touch_worker, spsa_claim, spsa_renew, spsa_report, spsa_release,
    spsa_fail, spsa_engine_bytes, spsa_work_left,
    spsa_claim_build, spsa_renew_build, spsa_publish_build, spsa_fail_build,
    spsa_own_machine, spsa_machine_of, spsa_check_registrations, spsa_lease_batch, spsa_next_run,
    spsa_may_retry, spsa_note_failure, spsa_check_range, spsa_check_text, spsa_check_voids,
    spsa_end_stalled_sessions
    FROM PUBLIC;

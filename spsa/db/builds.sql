-- The statements of builds: engines that workers build for others.

-- fragment: may_build
-- whether worker w may carry out order b
b.attempt < b.max_attempts AND w.provides LIKE b.requires
    AND EXISTS (SELECT 1 FROM spsa_machine m WHERE m.name = w.host AND m.revoked_at IS NULL
                   AND (m.role = 'builder' OR m.invited_by IS NULL))
    AND NOT EXISTS (SELECT 1 FROM spsa_build_failure f
                     WHERE f.build_id = b.id AND f.machine = w.host)
    AND NOT EXISTS (SELECT 1 FROM spsa_set_aside a WHERE a.machine = w.host AND a.sha256 IS NULL)

-- name: claim_build
UPDATE spsa_build
   SET status = 'leased', attempt = attempt + 1, claim_id = :claim_id, worker_id = :worker_id,
       leased_at = spsa_time(0), lease_expires_at = spsa_time(:lease_seconds),
       plus_bytes = NULL, minus_bytes = NULL
 WHERE id = (
    SELECT b.id FROM spsa_build b JOIN spsa_worker w ON w.id = :worker_id
     WHERE (b.status = 'ready' OR b.status = 'leased' AND b.lease_expires_at < spsa_time(0))
       AND b.wanted_until > spsa_time(0) AND {may_build}
     ORDER BY b.id LIMIT 1 FOR UPDATE OF b SKIP LOCKED)
   AND NOT EXISTS (SELECT 1 FROM spsa_build c WHERE c.claim_id = :claim_id);

-- name: builders
-- the workers that were seen recently and may carry out an order, or do so now
SELECT count(*) FROM spsa_worker w JOIN spsa_build b ON b.id = :build_id
 WHERE w.last_seen_at > spsa_time(-{ACTIVE_SECONDS}) AND {may_build}
    OR w.id = b.worker_id AND b.status = 'leased' AND b.lease_expires_at >= spsa_time(0);

-- name: renew_build
UPDATE spsa_build SET lease_expires_at = spsa_time(:lease_seconds)
 WHERE id = :build_id AND claim_id = :claim_id AND worker_id = :worker_id AND status = 'leased'
   AND wanted_until > spsa_time(0) AND leased_at > spsa_time(-{LONGEST_BUILD})
RETURNING id;

-- name: upload.holder
SELECT b.worker_id
  FROM spsa_build b JOIN spsa_worker w ON w.id = b.worker_id JOIN spsa_machine m ON m.name = w.host
 WHERE b.id = :build_id AND b.claim_id = :claim_id AND b.status = 'leased'
   AND w.host = :machine AND m.role = 'builder' AND m.revoked_at IS NULL;

-- name: publish_build.engine
INSERT INTO spsa_engine (sha256, build_key, target, size, bench, path, bytes)
    VALUES (:sha256, :build_key, :target, :size, :bench, :sha256, :bytes)
    ON CONFLICT (sha256) DO UPDATE SET bytes = EXCLUDED.bytes WHERE spsa_engine.bytes IS NULL;

-- name: publish_build
UPDATE spsa_build
   SET status = 'done', recipe = '{{}}', plus_sha256 = :plus_sha256, minus_sha256 = :minus_sha256,
       plus_bench = :plus_bench, minus_bench = :minus_bench, binary_requires = :binary_requires,
       plus_bytes = NULL, minus_bytes = NULL
 WHERE id = :build_id;

-- name: fail_build
UPDATE spsa_build
   SET status = 'ready', claim_id = NULL, lease_expires_at = NULL, attempt = attempt - :attempts,
       plus_bytes = NULL, minus_bytes = NULL
 WHERE id = :build_id AND claim_id = :claim_id AND worker_id = :worker_id AND status = 'leased'
RETURNING id;

-- name: fail_build.machine
INSERT INTO spsa_build_failure (build_id, machine, reason)
    SELECT :build_id, w.host, :reason FROM spsa_worker w WHERE w.id = :worker_id
    ON CONFLICT (build_id, machine) DO UPDATE SET reason = EXCLUDED.reason;

-- Taken once no node of 0.2 holds a lease: from here on, what 0.2 cannot read is written. It refuses to open this schema;
-- this refuses one that opened it before, and registers or renews now.
CREATE TRIGGER nodes_register_with_a_release BEFORE INSERT ON nodes WHEN NEW.release IS NULL
BEGIN
  SELECT RAISE(ABORT, 'the database was upgraded to 0.3; install this release here too');
END;
CREATE TRIGGER nodes_renew_with_a_release BEFORE UPDATE OF lease_until ON nodes WHEN NEW.release IS NULL
BEGIN
  SELECT RAISE(ABORT, 'the database was upgraded to 0.3; install this release here too');
END;

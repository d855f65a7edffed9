-- Taken once no node of 0.2 holds a lease: from here on, what 0.2 cannot read is written. It refuses to open this schema;
-- this refuses one that opened it before, and registers or renews now.
ALTER TABLE nodes ADD CONSTRAINT nodes_have_a_release CHECK (release IS NOT NULL OR voided_at IS NOT NULL) NOT VALID;

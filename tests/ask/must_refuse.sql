-- Questions that must be refused. Each is preceded by a part of the message that says why.

-- rows cannot be listed
SELECT * FROM t;
-- must be in GROUP BY
SELECT age FROM t;
-- selects no COUNT
SELECT sex FROM t GROUP BY sex;
-- a release is joined only with tables that you give with the question
SELECT COUNT(*) FROM t JOIN others USING (zip);
-- a join cannot be answered
SELECT COUNT(*) FROM t, regions;
-- WITH
WITH x AS (SELECT 1) SELECT COUNT(*) FROM x;
-- UNION cannot be asked
SELECT COUNT(*) FROM t UNION SELECT 1;
-- DISTINCT
SELECT DISTINCT COUNT(*) FROM t;
-- takes one column
SELECT COUNT(DISTINCT age, sex) FROM t;
-- DISTINCT is possible in COUNT
SELECT SUM(DISTINCT age) FROM t;
-- a quantile needs a number from 0 to 1
SELECT QUANTILE_CONT(age, 1.5) FROM t;
-- not be a part of a formula
SELECT MEDIAN(age) + 1 FROM t;
-- unless it is selected too
SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY MEDIAN(age);
-- MEDIAN, quantiles, MIN and MAX need numbers
SELECT MEDIAN(sex) FROM t;
-- MEDIAN, quantiles, MIN and MAX need numbers
SELECT MAX(zip) FROM t;
-- window
SELECT COUNT(*) OVER () FROM t;
-- the aggregate mode()
SELECT MODE(age) FROM t;
-- not be a part of a formula
SELECT SUM(age) / MAX(age) FROM t;
-- around or beside an aggregate
SELECT ROUND(AVG(age)) FROM t;
-- the aggregate sum()
SELECT COUNT(*) FROM t WHERE SUM(age) > 3;
-- column 'agee' is not in the release
SELECT COUNT(*) FROM t WHERE agee > 3;
-- column 'bucket' is not in the release
SELECT COUNT(*) FROM t WHERE bucket = 3;
-- column 'rowid' is not in the release
SELECT COUNT(*) FROM t WHERE rowid = 3;
-- there is no table 'u'
SELECT COUNT(*) FROM t WHERE u.age = 3;
-- only one statement
SELECT COUNT(*) FROM t; DROP TABLE t;
-- only one statement
SELECT COUNT(*) FROM t; SET lock_configuration = false;
-- PRAGMA cannot be asked
PRAGMA database_list;
-- SET cannot be asked
SET memory_limit = '1TB';
-- ATTACH cannot be asked
ATTACH '/tmp/x.db';
-- COPY cannot be asked
COPY t TO '/tmp/x.csv';
-- INSERT cannot be asked
INSERT INTO t VALUES (1);
-- one plain table name
SELECT COUNT(*) FROM read_csv('/etc/passwd');
-- one plain table name
SELECT COUNT(*) FROM (SELECT * FROM read_text('/etc/passwd'));
-- one plain table name
SELECT COUNT(*) FROM range(10);
-- a qualified table name
SELECT COUNT(*) FROM information_schema.tables;
-- a sub-select cannot read the table 't'
SELECT COUNT(*) FROM t WHERE age > (SELECT AVG(age) FROM t);
-- a sub-select cannot read the table 'duckdb_settings'
SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM duckdb_settings);
-- a sub-select without one plain table
SELECT COUNT(*) FROM t WHERE zip IN (SELECT content FROM read_text('/etc/passwd'));
-- JOINS is not possible in a sub-select
SELECT COUNT(*) FROM t WHERE zip IN (SELECT r.zip FROM regions r, read_text('/etc/passwd') f);
-- a sub-select cannot read the table '/etc/passwd'
SELECT COUNT(*) FROM t WHERE zip IN (SELECT column0 FROM '/etc/passwd');
-- UNION is not possible here
SELECT COUNT(*) FROM t WHERE zip IN (SELECT zip FROM regions UNION SELECT content FROM read_text('/etc/passwd'));
-- the function rand() is not possible
SELECT COUNT(*) FROM t WHERE random() < 0.5;
-- the function now() is not possible
SELECT COUNT(*) FROM t WHERE now() > DATE '2020-01-01';
-- the function getenv() is not possible
SELECT COUNT(*) FROM t WHERE getenv('HOME') = zip;
-- the function current_setting() is not possible
SELECT COUNT(*) FROM t WHERE current_setting('memory_limit') = zip;
-- the function nextval() is not possible
SELECT COUNT(*) FROM t WHERE nextval('s') = 1;
-- the function query() is not possible
SELECT COUNT(*) FROM t WHERE query('SELECT 1') = 1;
-- the function columns() is not possible
SELECT COUNT(*) FROM t WHERE COLUMNS('a.*') > 1;
-- ROLLUP
SELECT sex, COUNT(*) FROM t GROUP BY ROLLUP (sex);
-- QUALIFY
SELECT sex, COUNT(*) FROM t GROUP BY sex QUALIFY 1 = 1;
-- a sample
SELECT COUNT(*) FROM t TABLESAMPLE 10 PERCENT;
-- LIMIT must be a whole number
SELECT sex, COUNT(*) FROM t GROUP BY sex LIMIT (SELECT 1);
-- must be in GROUP BY to be used here
SELECT sex, COUNT(*) FROM t GROUP BY sex HAVING age > 3;
-- there is no selected column number 7
SELECT sex, COUNT(*) FROM t GROUP BY 7;
-- SUM and AVG need numbers
SELECT SUM(disease) FROM t;
-- names no table
SELECT COUNT(*);
-- near
SELECT COUNT(* FROM t WHERE;
-- DuckDB cannot evaluate
SELECT COUNT(*) FROM t WHERE age + sex = 3;
-- DuckDB cannot evaluate
SELECT COUNT(*) FROM t WHERE CAST(disease AS INTEGER) = 3;
-- WITH
WITH RECURSIVE x AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM x) SELECT COUNT(*) FROM x;
-- WITH is not possible in a sub-select
SELECT COUNT(*) FROM t WHERE age IN (WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x) SELECT i FROM x);
-- one plain table name
SELECT COUNT(*) FROM (VALUES (1), (2)) AS v;
-- one plain table name
SELECT COUNT(*) FROM glob('/*');
-- a sub-select without one plain table
SELECT COUNT(*) FROM t WHERE age IN (SELECT unnest([1, 2, 3]));
-- a sub-select without one plain table
SELECT COUNT(*) FROM t WHERE age IN (SELECT i FROM generate_series(1, 1000000000) AS g(i));
-- a sub-select without one plain table
SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM pragma_table_info('t'));
-- a sub-select without one plain table
SELECT COUNT(*) FROM t WHERE zip IN (SELECT zip FROM read_parquet('qit.parquet'));
-- a sub-select cannot read the table 'regions'
SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM main.regions);
-- a sub-select cannot read the table 'pg_class'
SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM pg_catalog.pg_class);
-- a sub-select cannot read the table 'sqlite_master'
SELECT COUNT(*) FROM t WHERE zip IN (SELECT name FROM sqlite_master);
-- a join cannot be answered
SELECT COUNT(*) FROM t CROSS JOIN range(1000000000);
-- a join cannot be answered
SELECT COUNT(*) FROM t POSITIONAL JOIN regions;
-- a release is joined only with tables
SELECT COUNT(*) FROM t, LATERAL (SELECT 1) AS x;
-- JOINS is not possible in a sub-select
SELECT COUNT(*) FROM t WHERE zip IN (SELECT a.zip FROM regions a CROSS JOIN regions b);
-- LOAD cannot be asked
LOAD httpfs;
-- INSTALL cannot be asked
INSTALL httpfs;
-- CALL cannot be asked
CALL pragma_version();
-- CREATE cannot be asked
CREATE TABLE x AS SELECT 1;
-- UPDATE cannot be asked
UPDATE t SET age = 1;
-- DELETE cannot be asked
DELETE FROM t;
-- DROP cannot be asked
DROP TABLE t;
-- EXPLAIN cannot be asked
EXPLAIN SELECT COUNT(*) FROM t;
-- DESCRIBE cannot be asked
DESCRIBE t;
-- SHOW cannot be asked
SHOW TABLES;
-- EXECUTE cannot be asked
EXECUTE x;
-- DETACH cannot be asked
DETACH x;
-- CHECKPOINT cannot be asked
CHECKPOINT;
-- COPY cannot be asked
COPY (SELECT 1) TO '/tmp/x.csv';
-- INTO cannot be answered
SELECT COUNT(*) INTO x FROM t;
-- the function getvariable() is not possible
SELECT COUNT(*) FROM t WHERE getvariable('x') = 1;
-- the function repeat() is not possible
SELECT COUNT(*) FROM t WHERE length(repeat('x', 1000000000)) > age;
-- the function list_aggregate() is not possible
SELECT COUNT(*) FROM t WHERE list_aggregate([age], 'sum') > 3;
-- the function write_log() is not possible
SELECT COUNT(*) FROM t WHERE write_log('x') = 1;
-- the function getenv() is not possible
SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY getenv('HOME');
-- column 't' is not in the release
SELECT COUNT(t) FROM t;
-- window
SELECT SUM(age) OVER (ORDER BY age) FROM t;
-- must be in GROUP BY
SELECT COUNT(*), (SELECT region FROM regions LIMIT 1) FROM t;
-- a file cannot be asked
SELECT COUNT(*) FROM '/etc/passwd';
-- a file cannot be asked
SELECT COUNT(*) FROM "people.parquet" AS t WHERE t.age > 30;
-- PRAGMA
PRAGMA database_list;
-- a sub-select without one plain table
SELECT COUNT(*) FROM t WHERE age > (SELECT COUNT(*) FROM read_text('/etc/passwd'));
-- a join is on equal columns
SELECT COUNT(*) FROM t JOIN regions r ON t.zip < r.zip;
-- there is no column 'zone' to join on
SELECT COUNT(*) FROM t JOIN regions USING (zone);
-- a join cannot be answered if it is RIGHT
SELECT COUNT(*) FROM t RIGHT JOIN regions USING (zip);
-- a join cannot be answered if it is FULL OUTER
SELECT COUNT(*) FROM t FULL OUTER JOIN regions USING (zip);
-- a join is on a published column and one of the joined table
SELECT COUNT(*) FROM t JOIN regions r ON r.zip = r.region;
-- there is no table 'q' here
SELECT q.region, COUNT(*) FROM t JOIN regions r USING (zip) GROUP BY q.region;
-- a release is not joined with itself
SELECT COUNT(*) FROM t JOIN t AS other ON t.zip = other.zip;
-- window
SELECT age, RANK() OVER (ORDER BY age) FROM t;
-- window
SELECT sex, 1 + RANK() OVER (ORDER BY COUNT(*)) FROM t;

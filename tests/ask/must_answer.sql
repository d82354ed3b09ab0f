-- Questions that must be answered. On a release whose buckets hold one person each the answer
-- equals DuckDB's on the table itself. Each question is preceded by its meaning.

-- everybody
SELECT COUNT(*) FROM t;
-- any table name, an alias, a qualified column, names in any case
SELECT COUNT(*) FROM "my patients" AS p WHERE p.AGE >= 40 AND "Sex" = 'F';
-- quasi-identifiers and sensitive columns mixed freely
SELECT COUNT(*) FROM t WHERE (age > 50 AND disease = 'Flu') OR (sex = 'M' AND NOT disease IN ('Flu', 'Cold'));
-- a condition that compares a quasi-identifier with a sensitive number
SELECT COUNT(*) FROM t WHERE age / 20 > severity;
-- NULL is neither equal nor unequal to anything
SELECT COUNT(*) FROM t WHERE disease <> 'Flu';
-- NULL, asked for by name
SELECT COUNT(*) FROM t WHERE disease IS NULL OR weight IS NULL;
-- NOT IN with a NULL among the values is never true
SELECT COUNT(*) FROM t WHERE disease NOT IN ('Flu', NULL);
-- IS DISTINCT FROM treats NULL as a value
SELECT COUNT(*) FROM t WHERE disease IS DISTINCT FROM 'Flu';
-- NULL counts as false in WHERE, also under NOT
SELECT COUNT(*) FROM t WHERE NOT (weight > 70 AND disease = 'Cold');
-- a literal of another type than the column
SELECT COUNT(*) FROM t WHERE age IN ('30', '31', '32') OR weight = 70;
-- several aggregates, among them of columns with NULLs
SELECT COUNT(*) AS n, COUNT(weight) AS weighed, SUM(age) AS years, AVG(weight) AS mean_weight FROM t WHERE sex = 'F';
-- an average of a sensitive number
SELECT AVG(severity) FROM t WHERE age > 30;
-- a sum over both kinds of columns
SELECT SUM(age * severity) FROM t WHERE disease = 'Gout';
-- CASE inside an aggregate, and a boolean that is summed
SELECT SUM(CASE WHEN disease = 'Flu' THEN age ELSE 0 END) AS a, SUM(age > 40) AS b FROM t;
-- a share: FILTER and arithmetic of aggregates
SELECT 100.0 * COUNT(*) FILTER (WHERE disease = 'Flu') / COUNT(*) AS percent FROM t WHERE age < 50;
-- a mean as a ratio, minus another
SELECT SUM(age) / COUNT(*) - AVG(age) FILTER (WHERE disease = 'Cold') AS gap FROM t;
-- groups by a quasi-identifier
SELECT sex, COUNT(*) AS n FROM t GROUP BY sex;
-- groups by a sensitive column, NULL being a group
SELECT disease, COUNT(*) AS n, AVG(age) AS mean_age FROM t GROUP BY disease;
-- groups by both, with HAVING, ORDER BY and LIMIT
SELECT sex, disease, COUNT(*) AS n FROM t GROUP BY sex, disease HAVING COUNT(*) > 10 ORDER BY n DESC, 1, 2 LIMIT 4;
-- groups by an expression, by its alias
SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM t WHERE disease = 'Flu' GROUP BY decade ORDER BY decade;
-- groups by an expression of both kinds of columns
SELECT age > 40 AND disease = 'Flu' AS old_flu, COUNT(*) AS n FROM t GROUP BY 1 ORDER BY 2;
-- GROUP BY ALL, ORDER BY an aggregate that is not selected
SELECT zip, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY AVG(age) DESC LIMIT 2 OFFSET 1;
-- text functions and patterns
SELECT COUNT(*) FROM t WHERE lower(disease) LIKE 'g%' OR substring(zip, 1, 1) = '1' OR regexp_matches(zip, '^8');
-- BETWEEN, COALESCE, CAST, arithmetic
SELECT COUNT(*) FROM t WHERE COALESCE(weight, 0) BETWEEN 60 AND 75 AND CAST(zip AS INTEGER) % 2 = 1;
-- a sub-select on an auxiliary table
SELECT COUNT(*) FROM t WHERE zip IN (SELECT zip FROM regions WHERE region = 'east');
-- a correlated sub-select on an auxiliary table
SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM regions AS r WHERE r.zip = t.zip AND r.rank < t.severity);
-- groups from an auxiliary table
SELECT (SELECT region FROM regions WHERE regions.zip = t.zip) AS region, COUNT(*) AS n FROM t GROUP BY 1;
-- nobody
SELECT COUNT(*), SUM(age) + 0 FROM t WHERE age > 500;
-- a condition without a column
SELECT COUNT(*) FROM t WHERE TRUE AND 1 < 2;
-- a sum and a mean over people who have no number are NULL, their count is 0
SELECT SUM(severity) AS s, AVG(severity) AS a, COUNT(severity) AS n FROM t WHERE disease IS NULL;
-- a sum over nobody is NULL, a share of nobody 0
SELECT COUNT(*) FILTER (WHERE age > 500) / COUNT(*) AS none, SUM(age) FILTER (WHERE age > 500) AS nothing FROM t;
-- people without a weight are counted, and have no sum of weights
SELECT COUNT(*) AS n, SUM(weight) AS w FROM t WHERE weight IS NULL;
-- nothing equals NULL
SELECT COUNT(*) FROM t WHERE disease = NULL;
-- an unknown condition is not true
SELECT COUNT(*) FROM t WHERE (disease = 'Flu') IS NOT TRUE;
-- NULLIF takes numbers out of a sum
SELECT SUM(NULLIF(severity, 1)) AS s FROM t WHERE sex = 'M';
-- how many cells are NULL, as a difference
SELECT COUNT(*) - COUNT(disease) AS unknown, -1 * COUNT(*) AS minus FROM t;
-- CASE as a group, by its alias, in the order of the counts
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 50 THEN 'middle' ELSE 'old' END AS stage, COUNT(*) AS n
FROM t WHERE disease = 'Cold' GROUP BY stage ORDER BY n DESC;
-- CASE over both kinds of columns as a group, with HAVING and ORDER BY an alias
SELECT CASE disease WHEN 'Flu' THEN sex ELSE 'other' END AS who, AVG(age) AS a
FROM t GROUP BY who HAVING COUNT(*) > 5 ORDER BY a;
-- an alias of the table and of a group column
SELECT p.sex AS s, COUNT(*) AS n FROM t AS p WHERE p.disease IN ('Flu', 'Gout') GROUP BY p.sex ORDER BY s DESC;
-- a number from an auxiliary table
SELECT COUNT(*) FROM t WHERE severity > (SELECT MIN(rank) FROM regions);
-- those whom an auxiliary table does not know
SELECT COUNT(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM regions WHERE regions.zip = t.zip);
-- NOT IN a sub-select with a NULL is never true
SELECT COUNT(*) FROM t WHERE zip NOT IN (SELECT zip FROM regions);
-- CASE in a sub-select
SELECT COUNT(*) FROM t WHERE zip IN (SELECT CASE WHEN rank > 1 THEN zip END FROM regions);
-- not true is false or NULL
SELECT COUNT(*) FROM t WHERE (disease = 'Flu') IS NOT TRUE;
-- NULL in a list makes NOT IN never true
SELECT COUNT(*) FROM t WHERE disease NOT IN ('Flu', NULL);
-- a condition that is different for some
SELECT COUNT(*) FROM t WHERE CASE WHEN disease = 'Flu' THEN age > 40 WHEN sex = 'F' THEN NULL ELSE weight < 80 END;
-- a sum whose number depends on the row and on the secret
SELECT SUM(CASE WHEN disease = 'Flu' THEN age ELSE -severity END) FROM t;
-- pairs of values
SELECT COUNT(*) FROM t WHERE (sex, disease) IN (('F', 'Flu'), ('M', 'Cold'));
-- nobody
SELECT COUNT(*) FROM t WHERE NULL;
-- medians and quantiles of what is published and of what is secret
SELECT MEDIAN(age), QUANTILE_CONT(weight, 0.9), QUANTILE_DISC(age, 0.25), MEDIAN(severity) FROM t;
-- a percentile in the standard's words, either way round
SELECT PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY weight) AS a, PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY severity) AS b FROM t;
-- a median in groups, of some
SELECT disease, MEDIAN(age) FILTER (WHERE sex = 'F') AS m, QUANTILE_CONT(severity, 0.75) AS q FROM t GROUP BY disease;
-- a median of nobody
SELECT MEDIAN(age) FROM t WHERE age < 0;
-- variances and standard deviations
SELECT sex, VAR_SAMP(age), VAR_POP(severity), STDDEV(weight), STDDEV_POP(severity) FROM t GROUP BY sex;
-- a variation coefficient
SELECT STDDEV(age) / AVG(age) AS cv, 2 * VAR_POP(age) FROM t WHERE disease = 'Flu';
-- correlations, of pairs that are known
SELECT disease, CORR(age, weight), COVAR_POP(weight, severity), COVAR_SAMP(age, severity) FROM t GROUP BY disease ORDER BY disease;
-- the least and the largest
SELECT sex, MIN(age), MAX(weight), MIN(severity), MAX(age) FILTER (WHERE disease = 'Flu') FROM t GROUP BY sex;
-- how many different values
SELECT disease, COUNT(DISTINCT age), COUNT(DISTINCT zip) FILTER (WHERE severity = 2), COUNT(DISTINCT severity) FROM t GROUP BY disease;
-- ordered by a median that is selected
SELECT zip, MEDIAN(weight) AS m FROM t GROUP BY zip ORDER BY m DESC LIMIT 2;
-- an inner join with an auxiliary table, grouped by its column
SELECT r.region, COUNT(*), AVG(age) FROM t JOIN regions r ON t.zip = r.zip GROUP BY r.region;
-- a left join keeps people without a row
SELECT region, COUNT(*) FROM t LEFT JOIN regions USING (zip) GROUP BY region;
-- an inner join leaves people without a row out, also where no column of it is asked about
SELECT disease, COUNT(*), SUM(severity) FROM t JOIN regions ON regions.zip = t.zip GROUP BY disease;
-- conditions on joined columns
SELECT COUNT(*) FROM t JOIN regions r USING (zip) WHERE r.region = 'east' AND disease = 'Flu';
-- joined columns in sums, filters, HAVING and ORDER BY
SELECT r.region AS where_, SUM(r.rank * severity) AS s, COUNT(*) FILTER (WHERE rank IN (1, 2)) FROM t LEFT JOIN regions r ON r.zip = t.zip GROUP BY r.region HAVING COUNT(*) > 1 ORDER BY where_;

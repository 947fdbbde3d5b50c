-- The query of Tucker et al. 2003, §7.2: the highest temperature of each hour in the whole warehouse,
-- from two sensors that say after each hour that it is over.

CREATE TABLE sensor1 (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${SENSORS}/sensor1.xml', rowTag 'tempdata', schemes 'hour');

CREATE TABLE sensor2 (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${SENSORS}/sensor2.xml', rowTag 'tempdata', schemes 'hour');

SELECT MAX(currtmp) AS maxtemp, hour
FROM (SELECT currtmp, hour FROM sensor1 UNION SELECT currtmp, hour FROM sensor2)
GROUP BY hour;

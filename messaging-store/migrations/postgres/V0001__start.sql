-- Ends the transaction with a conflict unless a statement touched as many rows as it should have.
CREATE FUNCTION expect_rows(touched bigint, expected bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF touched IS DISTINCT FROM expected THEN
        RAISE EXCEPTION 'touched % rows instead of %', touched, expected USING ERRCODE = 'MG001';
    END IF;
    RETURN true;
END
$$;
